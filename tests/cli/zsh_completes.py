"""zsh_completes.py FOLDER TYPED=WANTED ...: types words after `cgs ` into zsh, presses Tab, and looks
for what is wanted in the line that comes of it.  FOLDER has the script, as _cgs."""
import os
import pty
import select
import sys

pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp("zsh", ["zsh", "-f", "-i"])


def read_until(word):
    """what zsh prints until the word comes, or nothing more does for ten seconds"""
    text = ""
    while word not in text and select.select([fd], [], [], 10)[0]:
        text += os.read(fd, 65536).decode(errors="replace")
    return text


os.write(fd, b"unsetopt beep zle_bracketed_paste; fpath=(%s $fpath); cgs() {:}\n" % sys.argv[1].encode())
os.write(fd, b"autoload -U compinit; compinit -u -D; PS1=; echo rea''dy\n")
read_until("ready")
for pair in sys.argv[2:]:
    typed, wanted = pair.split("=", 1)
    os.write(fd, b"\x15cgs " + typed.encode() + b"\t")
    text = read_until(wanted)
    if wanted not in text:
        sys.exit("%s: %r is not in %r" % (typed, wanted, text))
os.write(fd, b"\x15exit\n")
