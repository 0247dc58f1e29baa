"""Makes sentences for a text encoder: token ids of 200 sentences to judge it by, and of 128 others to calibrate
with.

    python3 tests/conformance/sentences.py VOCAB.txt tests/data/quantized/minilm_sentences.npz

OUT.npz has `judged`, `calibration` and `apart`, which are uint16 [sentences, longest], padded with zeros.
Sentences have 1 to 8 clauses, drawn from the lists below. No sentence of `calibration` is judged. The sentences
of `apart`, 128 others to calibrate with, come from lists of their own, so they share no clause with the judged
ones. Sentences are split into words, and letters from marks; words are split into the longest pieces of the
vocabulary, as BERT's tokenizer does.
"""
import random
import re
import sys

import numpy as np

SUBJECTS = """the old lighthouse keeper|a small startup in Nairobi|my grandmother's recipe for plum cake|our cat
the committee on fisheries|an unexpected thunderstorm|the second violinist|a retired astronaut|this compiler
the night train to Vienna|every Tuesday the baker|the defendant's lawyer|a herd of reindeer|the quarterly report
nobody in the village|the new vaccine|a broken dishwasher|the chess grandmaster|two hundred volunteers
the river after heavy rain|an honest politician|the museum of glass|her left knee|a swarm of bees|the router
the last bus of the evening|our landlord|the patient in room 12|a Portuguese sailor|the library's oldest map
the customer support team|a jar of pickled onions|the sum of two primes|his favourite pair of boots|the tax office
a flock of pigeons|the marathon winner|their wedding photographer|the mayor's speech|a forgotten password
my neighbour's violin|the third chapter|a cup of green tea|the engine of the tractor|every second customer
the archbishop|an email from accounting|the smallest planet|our biology teacher|the bridge near the mill
a box of old letters|the nurse on duty|his theory of music|the football club|a pair of scissors
the emperor's garden|this morning's newspaper|the refugee family|a bowl of soup|the second amendment
the software update|a wounded soldier|the tallest building in Dubai|her first novel|the price of wheat
a pack of wolves|the insurance company|the left side of the road|an electric car|the children upstairs""".replace("\n", "|").split("|")
PREDICATES = """crossed the bridge before dawn without looking back|was rejected because of missing signatures
smells of cinnamon and burnt sugar|needs to be rewritten before the deadline on Friday|fell asleep on the sofa
surprised everyone by winning the final round|costs less than 40 euros per month|flooded the basement
turned out to be a misunderstanding about time zones|reduces memory use by a factor of three|migrates south
is waiting for a decision from the supreme court|sings softly when it thinks no one is listening
has been translated into seventeen languages, including Welsh|published its findings in a peer-reviewed journal
cannot explain how photosynthesis works to a child|asked whether gradient descent always converges
orders black coffee and a croissant|shipped 12,500 units in the third quarter of 2019|was dismissed as a rumour
refuses to eat anything green|will be repaired by the end of next week|gets warmer every summer
has nothing to do with the price of oil|plays the trumpet in a jazz band|lost three of its best players
is covered in moss and ivy|wrote a long letter to the editor|runs on port 8080 by default|won by two points
keeps falling off the shelf|was built in the thirteenth century|apologised for the delay|is hard to pronounce
grows best in sandy soil|interrupted the meeting twice|does not believe in ghosts|tastes better on the second day
opened a bakery near the station|should be handled with care|measures 30 by 42 centimetres|never came back
explains the origin of the universe|was sold at an auction for 1.2 million dollars|breathes through its skin
depends on the temperature of the water|voted against the new law|played chess in the park|makes me laugh
reminded him of the war|contains traces of nuts and milk|was founded by two brothers in 1911|hurts when it rains
won the prize for best screenplay|travelled across the desert on foot|is not available in your country
supports up to 64 devices at once|arrived at the airport too early|danced all night|has a fever and a cough
teaches mathematics at the university|fell from 8 to 5 percent last year|burned the dinner again|sleeps all day
is responsible for the northern region|collects stamps from all over the world|lies to the east of the mountains
requires a username and a secret key|stole the show with a single song|was arrested at the border
grew up on a farm in Ohio|changed the course of history""".replace("\n", "|").split("|")
JOINS = [", and ", ", but ", " while ", " because ", "; ", ", so ", ". ", "? "]
SHORT = ["hello.", "how far is the moon?", "buy milk and eggs", "error: segmentation fault (core dumped)",
         "I love you", "Paris is the capital of France.", "2 + 2 = 4", "what is the best way to learn Python?", "stop!",
         "the quick brown fox jumps over the lazy dog.", "thank you so much :)", "to be, or not to be",
         "interest rates rose by 0.25 percent", "she sells sea shells", "machine learning", "good night", "H2O",
         "chapter 4: the storm", "rain tomorrow, sun on Sunday", "lorem ipsum dolor sit amet"]


# -- lists that have nothing to do with those --------------------------------------------------

APART_WHO = """an impatient taxi driver|the geologist|our youngest nephew|a ship's cook|the opposition leader|most teenagers
a flooded quarry|the referee|some astronomers|a stray dog|the head gardener|Professor Lindqvist|the fishing fleet
an anonymous donor|the morning radio show|a famous soprano|the pharmacist|his twin sister|the parking meter
an overloaded server|the orchestra|two bank robbers|a rusty bicycle|the ambassador of Peru|a team of engineers
the oldest oak in the forest|the kitchen ceiling|a hungry caterpillar|the bus company|Queen Victoria|a plumber
the missing suitcase|every new employee|a beginner's guide to chess|the glacier|an unmarked van|the spare key
the stock market|a translated poem|the welder|several witnesses|a bottle of olive oil|the database|thirty penguins
the swimming instructor|an old photograph|the union|a clever magician|the space probe|our dentist|the vineyard
a leather wallet|the fire brigade|a medieval monk|the laboratory mouse|her accountant|the carnival|a wooden spoon
the blue whale|an experienced climber|the debate club|a lost tourist|the prime minister's cousin|the telescope""".replace("\n", "|").split("|")
APART_DOES = """forgot to lock|quietly admired|is going to replace|accidentally deleted|has never understood|paid too much for
would rather ignore|painted|carefully measured|cannot afford|is famous for|complained loudly about|dug up|inherited
was named after|photographed|shook hands with|almost destroyed|knows everything about|designed|is allergic to
borrowed money from|has been searching for|dreams of|mistook a cloud for|drove past|discovered|kept a diary about
refused to sign|improved|is made of the same metal as|warned us about|sold|rarely mentions|is older than|ran away from
broke the record of|carried|hid behind|was replaced by|invested heavily in|cleaned|gave a lecture on|criticised
tasted|inspected|was struck by|is connected to|cooked dinner for|rescued|lost interest in|wrote a song about""".replace("\n", "|").split("|")
APART_WHAT = """the frozen lake|a contract worth nine billion yen|an algorithm for sorting|the rights of workers|fresh basil
the cathedral's bells|a painting by Rembrandt|the human brain|a pile of unpaid bills|the password manager|wild salmon
three different kinds of cheese|the theory of evolution|a broken promise|the metro line|low interest loans|their tent
the solar eclipse|an emergency exit|the dictionary|a pink flamingo|vitamin D|the nuclear power plant|a silent film
the ozone layer|a second-hand piano|the missing paragraph|wooden furniture|the invasion of 1066|a spelling mistake
the hospital wing|an empty notebook|the hotel in Lisbon|a complicated divorce|bitter chocolate|the speed of light
the annual budget|a tin of sardines|public opinion|the volcano|a pair of headphones|the girl next door|high heels
the customs officer|an ancient curse|the thermostat|global trade|a nest of hornets|the national anthem|rubber boots""".replace("\n", "|").split("|")
APART_WHEN = """|||||| in the middle of winter| after a sleepless night| for no obvious reason| near the Arctic Circle| at half past six
 with a sharp knife| during the festival| thanks to a generous grant| under the kitchen table| on the first of April
 without telling the police| in less than 90 seconds| throughout the eighties| despite the heavy traffic
 at the bottom of the sea| according to the manual| until the battery died| in front of a live audience
 with the help of a mirror| since the merger| along the coast of Chile| by mistake| like a true professional
 in southern Italy| before the invention of printing| for the sake of the children| against all odds""".replace("\n", "|").split("|")
APART_SHORT = ["goodbye!", "where is the nearest pharmacy?", "call mum at 7 pm", "warning: disk almost full", "no idea",
 "Tokyo is larger than Osaka.", "7 * 8 = 56", "how do I remove a red wine stain?", "congratulations on the new job",
 "all that glitters is not gold", "unemployment fell slightly in March", "deep sea diving", "CO2", "please wait",
 "see figure 12 for details", "what time does the show start", "once upon a time", "the end."]
APART_JOINS = [", yet ", ", or ", " although ", " when ", ": ", ", which is why ", "! ", " - "]


def drawn(r, n):
    made = []
    while len(made) < n:
        clauses = r.choice([1, 1, 1, 2, 2, 3, 4, 8])
        text = r.choice(JOINS).join(f"{r.choice(SUBJECTS)} {r.choice(PREDICATES)}" for _ in range(clauses))
        text += r.choice([".", ".", "!", "?", ""])
        if text not in made:
            made.append(text)
    return made


def drawn_apart(r, n):
    made = []
    while len(made) < n:
        clauses = [f"{r.choice(APART_WHO)} {r.choice(APART_DOES)} {r.choice(APART_WHAT)}{r.choice(APART_WHEN)}"
                   for _ in range(r.choice([1, 1, 2, 2, 3, 4, 6, 8]))]
        text = clauses[0] + "".join(r.choice(APART_JOINS) + c for c in clauses[1:]) + r.choice([".", ".", "!", "?", ""])
        if text not in made:
            made.append(text)
    return made


def pieces(word, vocab):
    made, at = [], 0
    while at < len(word):
        mark = "##" if at else ""
        end = next((e for e in range(len(word), at, -1) if mark + word[at:e] in vocab), None)
        if end is None:
            return [vocab["[UNK]"]]
        made.append(vocab[mark + word[at:end]])
        at = end
    return made


def ids(text, vocab):
    words = re.findall(r"[a-z0-9]+|[^a-z0-9\s]", text.lower())
    return [vocab["[CLS]"]] + [i for w in words for i in pieces(w, vocab)] + [vocab["[SEP]"]]


def table(sentences, vocab):
    rows = [ids(s, vocab) for s in sentences]
    made = np.zeros((len(rows), max(map(len, rows))), np.uint16)
    for row, to in zip(rows, made):
        to[:len(row)] = row
    return made


def main(vocab_file, out):
    with open(vocab_file, encoding="utf-8") as f:
        vocab = {w.rstrip("\n"): i for i, w in enumerate(f)}
    r = random.Random(6)
    judged = SHORT[:14] + drawn(r, 186)
    calibration = SHORT[14:] + [s for s in drawn(r, 140) if s not in judged][:122]
    apart = APART_SHORT + drawn_apart(random.Random(7), 128 - len(APART_SHORT))
    np.savez_compressed(out, **{k: table(v, vocab) for k, v in (("judged", judged), ("calibration", calibration),
                                                                ("apart", apart))})


if __name__ == "__main__":
    main(*sys.argv[1:])
