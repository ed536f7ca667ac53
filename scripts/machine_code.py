#!/usr/bin/env python3
"""machine_code.py BEFORE AFTER: compares the machine code of every GPU kernel of two builds, as a
change that must not touch kernels has to leave it.

Both are folders with objects of CUDA sources (*.cu.o) anywhere below them.  A kernel is known by
its target and its name, without what the compiler makes of the file's path, so it may move to
another file.  Prints a line per kernel that differs or is on one side alone, and the totals; exits
with 1 when anything differs.  Needs objcopy and zstd, and nothing of CUDA."""
import collections, hashlib, os, re, struct, subprocess, sys, tempfile


def images(path):
    """(target, ELF) of each image in the fat binary of an object"""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(['objcopy', '-O', 'binary', '--only-section=.nv_fatbin', path, out.name],
                       check=True, stderr=subprocess.DEVNULL)
        data = open(out.name, 'rb').read()
    start = 0
    while start + 16 <= len(data):
        magic, _, head, size = struct.unpack_from('<IHHQ', data, start)
        if magic != 0xBA55ED50: raise SystemExit('%s: no fat binary' % path)
        at, end = start + head, start + head + size
        while at < end:
            kind, _, header, stored = struct.unpack_from('<HHIQ', data, at)
            packed, = struct.unpack_from('<I', data, at + 16)
            target, = struct.unpack_from('<I', data, at + 28)
            body = data[at + header:at + header + stored]
            if kind == 2: # machine code; 1 is PTX
                if body[:4] == b'\x28\xb5\x2f\xfd':
                    body = subprocess.run(['zstd', '-dcq'], input=body[:packed or stored],
                                          capture_output=True, check=True).stdout
                yield target & 0xff, body
            at += header + stored
        start = (end + 7) // 8 * 8
        while start < len(data) and not data[start]: start += 8


def sections(elf):
    if elf[:4] != b'\x7fELF': raise SystemExit('an image that is no ELF file (compressed otherwise?)')
    table, = struct.unpack_from('<Q', elf, 40)
    size, count, names = struct.unpack_from('<HHH', elf, 58)
    rows = [struct.unpack_from('<IIQQQQIIQQ', elf, table + i * size) for i in range(count)]
    text = rows[names][4]
    for row in rows:
        name = elf[text + row[0]:elf.index(b'\0', text + row[0])].decode()
        yield name, b'' if row[1] == 8 else elf[row[4]:row[4] + row[5]]


def kernels(folder):
    found = collections.defaultdict(list)
    for place, _, files in os.walk(folder):
        for f in sorted(files):
            if not f.endswith('.cu.o'): continue
            for target, elf in images(os.path.join(place, f)):
                for name, body in sections(elf):
                    if not name.startswith('.text.'): continue
                    name = re.sub(r'\d+_GLOBAL__N__[0-9a-f]+_\d+_\w+?_cu_[0-9a-f]+(_\d+)?', '_', name[6:])
                    found['sm_%d %s' % (target, name)].append(hashlib.sha256(body).hexdigest())
    return {k: sorted(v) for k, v in found.items()}


if len(sys.argv) != 3: raise SystemExit(__doc__)
before, after = kernels(sys.argv[1]), kernels(sys.argv[2])
if not before or not after: raise SystemExit('no kernels found: *.cu.o are made by make CUDA=1')
same = 0
for k in sorted(before.keys() | after.keys()):
    if k not in after: print('gone   ', k)
    elif k not in before: print('new    ', k)
    elif before[k] != after[k]: print('differs', k)
    else: same += 1
print('%d and %d kernels, %d with the same machine code' % (len(before), len(after), same))
sys.exit(same != len(before) or same != len(after))
