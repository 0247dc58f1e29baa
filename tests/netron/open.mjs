// open.mjs FOLDER FILE ... -- opens files with Netron's own readers and prints, for each, a JSON line:
// {"file", "format", "graphs": [{"name", "inputs", "outputs", "nodes": {type: number}}]}, or {"file", "error"}.
import fs from "node:fs/promises";
import path from "node:path";
import url from "node:url";

const [folder, ...files] = process.argv.slice(2);
const load = (name) => import(url.pathToFileURL(path.resolve(folder, name)).href);
const view = await load("view.js");
const { BinaryStream } = await load("base.js");

// What an application of Netron's brings: where its parts lie, and who is told of errors.
const host = {
    require: (id) => load(`${id}.js`),
    asset: (file) => fs.readFile(path.join(folder, file), "utf-8"),
    event: () => {},
    exception: () => {},
};

const open = async (file) => {
    const context = {
        identifier: path.basename(file),
        stream: new BinaryStream(new Uint8Array(await fs.readFile(file))),
        entries: new Map(),
        require: host.require,
        asset: host.asset,
        fetch: () => { throw new Error("there is no other file"); },
        error: (error) => { throw error; },
    };
    return await new view.ModelFactoryService(host).open(context);
};

const graph = (g) => {
    const nodes = {};
    for (const n of g.nodes) {
        nodes[n.type.name] = (nodes[n.type.name] || 0) + 1;
    }
    const sizes = (list) => list.map((a) => String(a.value?.[0]?.type));
    const inner = g.nodes.filter((n) => Array.isArray(n.type.nodes)).map((n) => graph(n.type));
    return { name: g.name, inputs: sizes(g.inputs), outputs: sizes(g.outputs), nodes, inner };
};

for (const file of files) {
    try {
        const model = await open(file);
        console.log(JSON.stringify({ file, format: model.format, graphs: model.modules.map(graph) }));
    } catch (error) {
        console.log(JSON.stringify({ file, error: error.message }));
    }
}
