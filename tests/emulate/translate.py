#!/usr/bin/env python3
"""translate.py SRC OUT: CUDA sources below SRC -> C++ below OUT.

asm statements become calls with their operands, launches calls of emulate::launch, __shared__
variables memory of the block (see emulate.h).  Files that stay the same keep their time."""
import os, re, subprocess, sys

def closing(s, i):
    """index of the bracket that closes the one at i; strings are skipped"""
    pairs = {'(': ')', '[': ']', '{': '}'}
    depth = 0
    while i < len(s):
        c = s[i]
        if c in '"\'':
            q = c
            i += 1
            while s[i] != q:
                i += 2 if s[i] == '\\' else 1
        elif c in '([{':
            depth += 1
        elif c in ')]}':
            depth -= 1
            if depth == 0:
                return i
        i += 1
    raise SystemExit('unbalanced')

def split(s, sep):
    parts, depth, cur, i = [], 0, '', 0
    while i < len(s):
        c = s[i]
        if c == '"':
            j = i + 1
            while s[j] != '"':
                j += 2 if s[j] == '\\' else 1
            cur += s[i:j + 1]
            i = j + 1
            continue
        if c in '([{': depth += 1
        if c in ')]}': depth -= 1
        if c == sep and depth == 0:
            parts.append(cur)
            cur = ''
        else:
            cur += c
        i += 1
    return parts + [cur]

def operands(s):
    got = []
    for o in split(s, ','):
        m = re.match(r'\s*(?:\[\w+\]\s*)?"([^"]*)"\s*\((.*)\)\s*$', o, re.S)
        if m: got.append((m.group(1), m.group(2)))
        elif o.strip(): raise SystemExit('operand? ' + o)
    return got

def expand(text):
    """macros that make asm statements are expanded beforehand; includes, and what others may ask
    about with #if, stay"""
    keep = [l for l in text.split('\n') if re.match(r'#include|#define CGS_HAS_\w+ 1', l)]
    rest = '\n'.join(l for l in text.split('\n') if not l.startswith('#include'))
    done = subprocess.run(['g++', '-E', '-P', '-D__CUDA_ARCH_FEAT_SM90_ALL', '-D__CUDA_ARCH__=900', '-x', 'c++', '-'],
                          input=rest, capture_output=True, text=True, check=True).stdout
    return '#pragma once\n' + '\n'.join(keep) + '\n' + done

def asm(text):
    out, pos = '', 0
    for m in re.finditer(r'\basm\s*(volatile)?\s*\(', text):
        if m.start() < pos: continue
        end = closing(text, m.end() - 1)
        body = text[m.end():end]
        parts = split(body, ':')
        template = parts[0].strip()
        outs = operands(parts[1]) if len(parts) > 1 else []
        ins = operands(parts[2]) if len(parts) > 2 else []
        o = ', '.join('emulate::out(%s)' % e for _, e in outs)
        i = ', '.join('emulate::in(%s)' % e for _, e in ins)
        out += text[pos:m.start()]
        out += ('{ static const emulate::instruction of_i(%s); emulate::operand of_o[] = {%s}; '
                'emulate::operand of_n[] = {%s}; of_i.run(of_o, of_n); }'
                % (template, o or 'emulate::none()', i or 'emulate::none()'))
        pos = end + 1
    return out + text[pos:]

def launches(text):
    while '<<<' in text:
        a = text.index('<<<')
        b = text.index('>>>', a)
        # the kernel's name with template arguments stands before
        m = re.search(r'([A-Za-z_][\w:]*\s*(?:<[^<>;{}()]*(?:\([^()]*\)[^<>;{}()]*)*>)?)\s*$', text[:a])
        config = split(text[a + 3:b], ',') + ['0', '0']
        p = b + 3
        while text[p].isspace(): p += 1
        e = closing(text, p)
        # arguments are evaluated here, not when the kernel runs
        call = ('emulate::launch(dim3(%s), dim3(%s), %s, %s, [](auto... of_a) { %s(of_a...); }, %s)'
                % (config[0], config[1], config[2], config[3], m.group(1), text[p + 1:e]))
        text = text[:m.start(1)] + call + text[e + 1:]
    return text

def shared(text):
    def dynamic(m):
        return '%s *%s = (%s *)emulate::dynamic_shared();' % (m.group(2), m.group(3), m.group(2))
    text = re.sub(r'extern\s+__shared__\s+(__align__\(\d+\)\s*)?([\w ]+?)\s*(\w+)\[\];', dynamic, text)
    def fixed(m):
        done = ''
        for v in split(m.group(2), ','):
            n = re.match(r'\s*(\w+)\s*((?:\[[^\]]*\])*)\s*$', v)
            t = 'of_t_%s' % n.group(1)
            done += ('typedef %s %s%s; static const int of_k_%s = emulate::new_key(); '
                     '%s &%s = *(%s *)emulate::static_shared(of_k_%s, sizeof(%s));'
                     % (m.group(1), t, n.group(2), n.group(1), t, n.group(1), t, n.group(1), t))
        return done
    return re.sub(r'(?<!extern )__shared__\s+(?:__align__\(\d+\)\s*)?(\w+)\s+([^;]*);', fixed, text)

src, out = sys.argv[1:3]
for folder, _, names in os.walk(src):
    for name in names:
        if not name.endswith(('.cu', '.cuh')): continue
        path = os.path.join(folder, name)
        text = open(path).read()
        if name == 'wgmma.cuh': text = expand(text)
        text = shared(launches(asm(text)))
        text = '#line 1 "%s"\n' % path + text
        to = os.path.join(out, os.path.relpath(path, src))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to) or open(to).read() != text:
            open(to, 'w').write(text)
