/* style.c - the style sheet of the page.
 *
 * Colours are variables, so that drawings follow light and dark themes; print is always light.  The
 * methods have the paper's colours (blue, brown, green) in shades that colour-blind readers can
 * tell apart. */
#include "report/page.h"

const char *const cgs_page_style[] = {
    ":root{--bg:#fbfbfa;--card:#fff;--ink:#1d2429;--soft:#5b666e;--rule:#e2e5e7;--axis:#9aa3aa;"
    "--link:#0b61a4;--good:#0a7a53;--goodbg:#e4f4ec;--bad:#a63a12;--badbg:#fbe9e1;--even:#55606a;"
    "--evenbg:#eef0f2;--warn:#7a5200;--warnbg:#fff4d6;--code:#f3f4f5;--ref:#7b3fa0;"
    "--c0:#0072b2;--c1:#9c5a1e;--c2:#009e73;--c3:#cc79a7;--c4:#d98c00;--c5:#3d9fd6;--c6:#6a51a3;"
    "--c7:#6b6b6b}\n",
    "@media screen and (prefers-color-scheme:dark){:root{--bg:#14181b;--card:#1b2125;--ink:#e6eaed;"
    "--soft:#9aa6ae;--rule:#2e363c;--axis:#67727a;--link:#7cc0f5;--good:#5fd6a4;--goodbg:#143327;"
    "--bad:#f29a72;--badbg:#3b2118;--even:#b3bec6;--evenbg:#262e33;--warn:#f3cf74;--warnbg:#3a2f10;"
    "--code:#20272c;--ref:#c39be8;--c0:#58aeea;--c1:#d3945a;--c2:#34c997;--c3:#e59bc4;--c4:#f2b63d;"
    "--c5:#8ad0f5;--c6:#ab9fe6;--c7:#a9b1b7}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0 auto;padding:0 16px 48px;max-width:1160px;background:var(--bg);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;"
    "overflow-wrap:break-word}\n",
    "h1{font-size:1.7rem;line-height:1.2;margin:28px 0 16px;letter-spacing:-.01em}\n",
    "h2{font-size:1.3rem;margin:0 0 12px;letter-spacing:-.01em}\n",
    "h2 small{font-size:.85rem;font-weight:400;color:var(--soft);margin-left:8px}\n",
    "h3{font-size:1rem;margin:20px 0 8px}\n", "a{color:var(--link)}\n",
    ".verdict{display:grid;grid-template-columns:minmax(0,1.15fr) minmax(0,1fr);gap:12px 28px;"
    "align-items:center;background:var(--card);border:1px solid var(--rule);border-left:6px solid "
    "var(--even);border-radius:10px;padding:18px 20px;margin:0 0 14px}\n",
    ".verdict.good{border-left-color:var(--good)}.verdict.bad{border-left-color:var(--bad)}\n",
    ".verdict p{margin:0 0 10px}.verdict "
    "p:last-child{margin:0;color:var(--soft);font-size:.92rem}\n",
    ".verdict .run{color:var(--soft);font-size:.92rem;margin:0 0 4px}\n",
    ".verdict .badge{display:inline-block;font-weight:700;border-radius:999px;padding:2px 14px;"
    "color:var(--even);background:var(--evenbg)}\n",
    ".good .badge{color:var(--good);background:var(--goodbg)}"
    ".bad .badge{color:var(--bad);background:var(--badbg)}\n",
    ".verdict .lead{font-size:1.22rem;line-height:1.4;color:var(--ink)}\n",
    ".verdict figure{max-width:520px}\n",
    ".warn{color:var(--warn);background:var(--warnbg);border-radius:8px;padding:12px 16px;"
    "margin:0 0 14px;font-size:.92rem}.warn ul{margin:4px 0 0;padding-left:20px}\n",
    "nav{display:flex;flex-wrap:wrap;gap:6px;margin:0 0 22px;font-size:.9rem;align-items:center}\n",
    "nav a{text-decoration:none;border:1px solid var(--rule);background:var(--card);"
    "border-radius:999px;padding:3px 12px}nav b{flex-basis:100%;margin-top:6px}\n",
    "section{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:20px;margin:0 0 18px;scroll-margin-top:12px}\n",
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(320px,100%),1fr));"
    "gap:18px 22px;align-items:start;margin:12px 0}\n",
    ".grid.small{grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;"
    "max-width:920px}\n",
    "figure{margin:0;min-width:0;break-inside:avoid}\n",
    "section>figure{max-width:380px}section>figure:has(.strip){max-width:none}\n",
    "figcaption{color:var(--soft);font-size:.82rem;padding:2px 4px 0}\n",
    "figure img{display:block;max-width:100%;min-width:min(256px,100%);height:auto;"
    "image-rendering:pixelated;border-radius:6px}\n",
    ".strip img{max-width:none;height:auto;min-height:120px}\n",
    "svg{display:block;width:100%;height:auto;font-family:inherit}\n",
    ".note{color:var(--soft);font-size:.86rem;margin:8px 0;max-width:80ch}\n",
    ".cmd{background:var(--code);border-radius:6px;padding:8px 12px;margin:8px 0;font-size:.8rem;"
    "white-space:pre-wrap;overflow-wrap:anywhere}.cmd code::before{content:\"$ "
    "\";color:var(--soft)}\n",
    "code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans "
    "Mono\",monospace}\n",
    "td code{font-size:.8rem;overflow-wrap:anywhere}\n",
    ".scroll{overflow-x:auto;margin:8px 0}.tall{max-height:560px;overflow-y:auto}\n",
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;"
    "min-width:min(560px,100%)}\n",
    "th,td{padding:7px 14px 7px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--rule);white-space:nowrap}\n",
    "th[scope=col]{font-weight:600;color:var(--soft);font-size:.84rem;border-bottom:2px solid "
    "var(--rule);white-space:normal;min-width:64px}\n",
    ".tall th[scope=col]{position:sticky;top:0;background:var(--card)}\n",
    "th[scope=row]{font-weight:600}\n",
    "td.words{white-space:normal;min-width:110px;max-width:420px}\n",
    "td "
    "small{display:block;white-space:nowrap;color:var(--soft);font-size:.8rem;line-height:1.35}\n",
    "td small.pub{font-style:italic}\n",
    "td.better{color:var(--good);font-weight:600}td.worse{color:var(--bad);font-weight:600}\n",
    "td.better small,td.worse small{font-weight:400}\n",
    ".dot{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:7px}\n",
    "footer{color:var(--soft);font-size:.84rem;margin-top:26px}\n",
    /* drawings */
    "text{fill:var(--ink);font-size:12px}text.title{font-size:13px;font-weight:600}\n",
    "text.tick{fill:var(--soft);font-size:11px}text.label{fill:var(--soft);font-size:11.5px}\n",
    "text.key,text.row{font-size:11.5px}text.inbar{fill:var(--card);font-size:11px;font-weight:600}"
    "\n",
    "path.grid{stroke:var(--rule);fill:none}path.axis{stroke:var(--axis);fill:none}\n",
    "path.zero{stroke:var(--axis);stroke-width:1.4;fill:none}\n",
    "path.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n",
    "path.path{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\n",
    "path.faint{fill:none;stroke-width:1.2;stroke-dasharray:4 3;opacity:.75}\n",
    "path.whisker{fill:none;stroke-width:2.4;stroke-linecap:round}\n",
    "path.ref{fill:none;stroke:var(--ref);stroke-width:1.6;stroke-dasharray:5 3}\n",
    ".refmark{fill:var(--ref)}.band{opacity:.16}.mark{stroke:var(--card);stroke-width:1}\n",
    ".box{fill:none;stroke:var(--axis)}.pane{fill:none;stroke:var(--rule)}\n",
    ".cells{shape-rendering:crispEdges}\n",
    ".c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}"
    ".c4{stroke:var(--c4)}.c5{stroke:var(--c5)}.c6{stroke:var(--c6)}.c7{stroke:var(--c7)}\n",
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}"
    ".f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}\n",
    "text.t0{fill:var(--c0)}text.t1{fill:var(--c1)}text.t2{fill:var(--c2)}text.t3{fill:var(--c3)}"
    "text.t4{fill:var(--c4)}text.t5{fill:var(--c5)}text.t6{fill:var(--c6)}text.t7{fill:var(--c7)}"
    "\n",
    ".b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}"
    ".b3{background:var(--c3)}.b4{background:var(--c4)}.b5{background:var(--c5)}"
    ".b6{background:var(--c6)}.b7{background:var(--c7)}\n",
    "@media (max-width:760px){body{padding:0 10px 32px}section{padding:14px 12px}"
    ".verdict{grid-template-columns:minmax(0,1fr);padding:14px}.verdict .lead{font-size:1.1rem}"
    "h1{font-size:1.4rem;margin-top:18px}th[scope=row]{white-space:normal;max-width:118px}"
    "tr>:first-child{position:sticky;left:0;background:var(--card);z-index:1}}\n",
    "@media print{body{max-width:none;padding:0;background:#fff;font-size:11pt}nav{display:none}"
    "section,.verdict{border:0;padding:0;margin:0 0 18pt}.verdict "
    "figure{max-width:360px}.tall,.scroll{max-height:none;"
    "overflow:visible}th,td{white-space:normal;padding-right:8px}table{font-size:.8rem}"
    "h2,h3{break-after:avoid}tr{break-inside:avoid}}\n",
    NULL};
