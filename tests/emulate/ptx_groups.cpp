/* ptx_groups.cpp - products of a warpgroup: operands in registers or, by descriptors, in shared
 * memory. */
#include "ptx.h"

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace emulate {

struct group_product {
    int n;
    float *d[128][128];
    uint32_t a[128][4];
    bool regs;
    uint64_t da, db;
    int scale, ta, tb;
    unsigned char *slot;
};
/* element (row, k) of an operand in shared memory; K major or (transposed) MN major, all swizzles
 */
static float element(const group_product &g, uint64_t desc, int row, int k, int transposed) {
    uint32_t start = (uint32_t)(desc & 0x3fff) << 4, lead = (uint32_t)(desc >> 16 & 0x3fff) << 4,
             stride = (uint32_t)(desc >> 32 & 0x3fff) << 4, base = (uint32_t)(desc >> 49 & 7),
             mode = (uint32_t)(desc >> 62);
    if (base) die("a matrix whose base offset is not 0");
    uint32_t span = mode == 0   ? 16
                    : mode == 1 ? 128
                    : mode == 2 ? 64
                                : 32; /* bytes in a row of an atom */
    uint32_t at;
    if (!transposed) { /* atoms of 8 rows x span bytes; K has 32 bytes here */
        uint32_t byte = (uint32_t)k * 2;
        if (mode == 0)
            at = start + byte / 16 * lead + (uint32_t)row / 8 * stride + (uint32_t)row % 8 * 16 +
                 byte % 16;
        else
            at = start + (uint32_t)row / 8 * stride + (uint32_t)row % 8 * span + byte;
    } else { /* atoms of span bytes along MN x 8 of k */
        uint32_t byte = (uint32_t)row * 2;
        if (mode == 0)
            at = start + byte / 16 * stride + (uint32_t)k / 8 * lead + (uint32_t)k % 8 * 16 +
                 byte % 16;
        else
            at = start + byte / span * lead + (uint32_t)k / 8 * stride + (uint32_t)k % 8 * span +
                 byte % span;
    }
    if (mode) at ^= (at >> 7 & (span / 16 - 1)) << 4;
    if (at >= 1u << 18) die("a matrix outside of shared memory");
    return bf(*(uint16_t *)(g.slot + at));
}
static void multiply(const group_product &g) {
    static float A[64][16], B[16][256], C[256];
    for (int r = 0; r < 64; r++)
        for (int k = 0; k < 16; k++)
            if (g.regs) {
                int t = r / 16 * 32 + r % 8 * 4 + k % 8 / 2;
                A[r][k] = bf((uint16_t)(g.a[t][r % 16 / 8 + 2 * (k / 8)] >> 16 * (k % 2)));
            } else
                A[r][k] = element(g, g.da, r, k, g.ta);
    for (int n = 0; n < g.n; n++)
        for (int k = 0; k < 16; k++) B[k][n] = element(g, g.db, n, k, g.tb);
    for (int r = 0; r < 64; r++) {
        for (int n = 0; n < g.n; n++) C[n] = 0;
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < g.n; n++) C[n] += A[r][k] * B[k][n];
        for (int n = 0; n < g.n; n++) {
            int t = r / 16 * 32 + r % 8 * 4 + n % 8 / 2;
            float *d = g.d[t][n / 8 * 4 + r % 16 / 8 * 2 + n % 2];
            *d = (g.scale ? *d : 0) + C[n];
        }
    }
}
static std::map<unsigned char *, std::deque<std::vector<group_product *>>>
    products; /* by slot and group */
struct product_args {
    const instruction *ins;
    operand *o, *i;
    int thread;
    unsigned char *slot;
};
static unsigned char *group_key() { return own_slot() + thread_number() / 128; }
static void retire(std::vector<group_product *> &v) {
    for (group_product *g : v) {
        multiply(*g);
        delete g;
    }
    v.clear();
}
PTX(wgmma) {
    product_args mine = {&ins, o, i, thread_number(), own_slot()};
    group_meet(&mine, [](void **args, int) {
        group_product *g = new group_product;
        product_args *first = (product_args *)args[0];
        g->n = atoi(strstr(first->ins->text, ".m64n") + 5);
        g->slot = first->slot;
        g->regs = first->i[0].size == 4;
        int b = g->regs ? 4 : 1;
        g->da = first->i[0].v;
        g->db = first->i[b].v;
        g->scale = (int)first->i[b + 1].v;
        /* the last immediates of the text: (scale-a, scale-b,) trans-a (none from registers),
         * trans-b */
        std::string t = first->ins->text;
        t = t.substr(0, t.rfind(';'));
        size_t brace = t.rfind(';');
        if (t.find("wgmma", 0) < brace && brace != std::string::npos &&
            t.find("wgmma", brace) == std::string::npos)
            t = t.substr(0, brace);
        std::vector<std::string> last;
        size_t p = t.rfind('}') == std::string::npos ? 0 : t.rfind('}');
        for (size_t q = p; q < t.size();) {
            size_t e = t.find(',', q + 1);
            std::string w = t.substr(q + 1, (e == std::string::npos ? t.size() : e) - q - 1);
            size_t s = w.find_first_not_of(" \n\t");
            last.push_back(s == std::string::npos ? "" : w.substr(s));
            if (e == std::string::npos) break;
            q = e;
        }
        auto value = [&](const std::string &w) {
            if (w[0] != '%') return atoi(w.c_str());
            return (int)first->i[atoi(w.c_str() + 1) - g->n / 2].v;
        };
        g->tb = value(last[last.size() - 1]);
        g->ta = g->regs ? 0 : value(last[last.size() - 2]);
        for (int t = 0; t < 128; t++) {
            product_args *a = (product_args *)args[t];
            if (a->i[b].v != g->db || (!g->regs && a->i[0].v != g->da) ||
                (int)a->i[b + 1].v != g->scale)
                die("threads of a warpgroup give different descriptors");
            for (int k = 0; k < g->n / 2; k++) g->d[t][k] = (float *)a->o[k].p;
            for (int k = 0; k < 4 && g->regs; k++) g->a[t][k] = (uint32_t)a->i[k].v;
        }
        auto &q = products[group_key()];
        if (q.empty()) q.emplace_back();
        if (early()) {
            multiply(*g);
            delete g;
        } else
            q.back().push_back(g);
    });
}
PTX(wgmma_commit) {
    group_meet(nullptr, [](void **, int) {
        auto &q = products[group_key()];
        if (q.empty()) q.emplace_back();
        q.emplace_back();
    });
}
PTX(wgmma_wait) {
    static size_t n;
    n = strchr(ins.text, '%')
            ? (size_t)i[0].v
            : (size_t)atoi(strstr(ins.text, "wait_group") + strlen("wait_group.sync.aligned"));
    static meeting f = [](void **, int) {
        auto &q = products[group_key()];
        while (q.size() > n + 1) {
            retire(q.front());
            q.pop_front();
        }
    };
    group_meet(nullptr, f);
}

} // namespace emulate
