#!/usr/bin/env python3
"""make_old.py MODEL.pt2 DIR -- writes DIR/27.pt2 and DIR/28.pt2, MODEL as torch 2.7 and 2.8 would have saved it.

MODEL's weights are float32, and it has no constants.
"""
import json
import sys
import zipfile

sys.dont_write_bytecode = True
from make_hostile import HOOKS, Member, archive, rebuilt, storage, string


def pickled(config):
    """A state dict with the tensors of a config; what lies in weight_N has the key N."""
    out = b"\x80\2ccollections\nOrderedDict\n)R("
    for name, entry in config.items():
        meta = entry["tensor_meta"]
        sizes, strides = ([d["as_int"] for d in meta[key]] for key in ("sizes", "strides"))
        n = 1
        for size in sizes:
            n *= size
        tensor = rebuilt(storage(key=entry["path_name"][len("weight_"):], n=n), 0, sizes, strides)
        out += string(name) + b"ctorch._utils\n_rebuild_parameter\n" + tensor + HOOKS + b"\x87R"
    return out + b"u}" + string("_metadata") + b"ccollections\nOrderedDict\n)Rsb."


def main():
    model = zipfile.ZipFile(sys.argv[1])
    read = lambda name: model.read("model/" + name)
    config = json.loads(read("data/weights/model_weights_config.json"))["config"]
    keys = sorted({entry["path_name"] for entry in config.values()})
    inner = archive([Member("archive/data.pkl", pickled(config)), Member("archive/byteorder", "little")] +
                    [Member("archive/data/" + key[len("weight_"):], read("data/weights/" + key)) for key in keys])
    program = read("models/model.json")
    with open(sys.argv[2] + "/27.pt2", "wb") as f:
        f.write(archive([Member("extra_files/note", "x"), Member("version", "8.7"),
                         Member("serialized_exported_program.json", program),
                         Member("serialized_state_dict.pt", inner)]))
    with open(sys.argv[2] + "/28.pt2", "wb") as f:
        f.write(archive([Member("model/models/model.json", program), Member("model/archive_format", "pt2"),
                         Member("model/archive_version", "0"), Member("model/data/weights/model.pt", inner)]))


if __name__ == "__main__":
    main()
