/* ptx.cpp - the instructions that kernels write as asm: those of a warp, small ones, and the table.
 */
#include "ptx.h"

#include <string>

namespace emulate {

/* ---- warps ---- */
struct mma_args {
    float *c[4];
    uint32_t a[4], b[2];
};
static PTX(mma) {
    mma_args m;
    for (int k = 0; k < 4; k++) m.c[k] = (float *)o[k].p, m.a[k] = (uint32_t)i[k].v;
    m.b[0] = (uint32_t)i[4].v, m.b[1] = (uint32_t)i[5].v;
    warp_meet(&m, [](void **args, int) {
        float A[16][16], B[16][8];
        for (int l = 0; l < 32; l++) {
            mma_args *m = (mma_args *)args[l];
            for (int k = 0; k < 4; k++)
                for (int h = 0; h < 2; h++)
                    A[l / 4 + 8 * (k % 2)][2 * (l % 4) + h + 8 * (k / 2)] =
                        bf((uint16_t)(m->a[k] >> 16 * h));
            for (int k = 0; k < 2; k++)
                for (int h = 0; h < 2; h++)
                    B[2 * (l % 4) + h + 8 * k][l / 4] = bf((uint16_t)(m->b[k] >> 16 * h));
        }
        for (int l = 0; l < 32; l++)
            for (int k = 0; k < 4; k++) {
                int r = l / 4 + 8 * (k / 2), n = 2 * (l % 4) + k % 2;
                float sum = *((mma_args *)args[l])->c[k];
                for (int j = 0; j < 16; j++) sum += A[r][j] * B[j][n];
                *((mma_args *)args[l])->c[k] = sum;
            }
    });
}
struct ldm_args {
    uint32_t at;
    operand *o;
    int n;
    bool trans;
};
static void ldm_meet(void **args, int) {
    for (int l = 0; l < 32; l++) {
        ldm_args *m = (ldm_args *)args[l];
        for (int k = 0; k < m->n; k++) {
            uint16_t v[2];
            for (int h = 0; h < 2; h++) {
                int row = m->trans ? 2 * (l % 4) + h : l / 4,
                    col = m->trans ? l / 4 : 2 * (l % 4) + h;
                uint32_t at = ((ldm_args *)args[8 * k + row])->at;
                if (at % 16) die("ldmatrix from address %u", at);
                v[h] = ((uint16_t *)from_shared(at))[col];
            }
            put(m->o[k], v[0] | (uint32_t)v[1] << 16);
        }
    }
}
static PTX(ldmatrix) {
    std::string t = ins.text;
    ldm_args m = {0, o,
                  t.find(".x4") != std::string::npos   ? 4
                  : t.find(".x2") != std::string::npos ? 2
                                                       : 1,
                  t.find(".trans") != std::string::npos};
    m.at = (uint32_t)i[0].v;
    warp_meet(&m, ldm_meet);
}
struct stm_args {
    uint32_t at;
    uint32_t r[4];
    int n;
    bool trans;
};
static PTX(stmatrix) {
    std::string t = ins.text;
    stm_args m = {(uint32_t)i[0].v,
                  {},
                  t.find(".x4") != std::string::npos   ? 4
                  : t.find(".x2") != std::string::npos ? 2
                                                       : 1,
                  t.find(".trans") != std::string::npos};
    for (int k = 0; k < m.n; k++) m.r[k] = (uint32_t)i[1 + k].v;
    warp_meet(&m, [](void **args, int) {
        for (int l = 0; l < 32; l++) {
            stm_args *m = (stm_args *)args[l];
            for (int k = 0; k < m->n; k++)
                for (int h = 0; h < 2; h++) {
                    int row = m->trans ? 2 * (l % 4) + h : l / 4,
                        col = m->trans ? l / 4 : 2 * (l % 4) + h;
                    uint32_t at = ((stm_args *)args[8 * k + row])->at;
                    if (at % 16) die("stmatrix to address %u", at);
                    ((uint16_t *)from_shared(at))[col] = (uint16_t)(m->r[k] >> 16 * h);
                }
        }
    });
}

/* ---- the rest ---- */
static PTX(nothing) { (void)ins; }
static PTX(ex2) { put_f(o[0], exp2f(f32(i[0]))); }
static PTX(rcp) { put_f(o[0], 1.0f / f32(i[0])); }
static PTX(ld_v4) {
    for (int k = 0; k < 4; k++) put(o[k], ((const uint32_t *)i[0].v)[k]);
}
static PTX(ld_acquire) {
    wait_a_little();
    put(o[0], *(const uint32_t *)i[0].v);
}
static PTX(st_release) {
    *(uint32_t *)i[0].v = (uint32_t)i[1].v;
    progress();
}
static PTX(atom_add) {
    uint32_t *p = (uint32_t *)from_shared((uint32_t)i[0].v);
    put(o[0], *p);
    *p += (uint32_t)i[1].v;
    progress();
}
static PTX(mapa64) {
    unsigned char *p = (unsigned char *)i[0].v;
    put(o[0], (uint64_t)(slot_of_block((int)i[1].v) + (p - slot_at(p))));
}
static PTX(mapa32) { put(o[0], near((uint32_t)i[0].v, (int)i[1].v)); }
static PTX(rank_of_block) { put(o[0], (uint64_t)own_rank()); }
static PTX(bar_sync) { named_barrier((int)i[0].v, (int)i[1].v, true); }
static PTX(bar_arrive) { named_barrier((int)i[0].v, (int)i[1].v, false); }
static PTX(cluster_sync_) { cluster_barrier(); }
static PTX(cluster_arrive_) { cluster_arrive(); }
static PTX(cluster_wait_) { cluster_wait(); }
static PTX(elect) { put(o[0], lane() == 0); }

static const struct {
    const char *start;
    ptx_function f;
} table[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16", mma},
    {"ldmatrix", ldmatrix},
    {"stmatrix", stmatrix},
    {"cp.async.commit_group cp.async.wait_group", cp_commit_wait},
    {"cp.async.commit_group", cp_commit},
    {"cp.async.wait_group", cp_wait_group},
    {"cp.async.wait_all", cp_wait_all},
    {"cp.async.bulk.prefetch", nothing},
    {"cp.async.bulk.shared::cluster.global", bulk_in},
    {"cp.async.bulk.shared::cta.global", bulk_in},
    {"cp.async.bulk.shared::cluster.shared::cta", bulk_across},
    {"cp.async.cg", cp_async},
    {"cp.async.ca", cp_async},
    {"st.async", st_async},
    {"mbarrier.init", mbar_init},
    {"mbarrier.arrive.expect_tx", mbar_expect_arrive},
    {"mbarrier.arrive.release.cluster.shared::cluster", mbar_arrive_},
    {"mbarrier.arrive", mbar_arrive_},
    {"mbarrier.expect_tx", mbar_expect},
    {"mbarrier.try_wait", mbar_try},
    {"wgmma.fence", nothing},
    {"wgmma.commit_group", wgmma_commit},
    {"wgmma.wait_group", wgmma_wait},
    {"wgmma.mma_async", wgmma},
    {"setmaxnreg", nothing},
    {"fence", nothing},
    {"griddepcontrol", nothing},
    {"ex2", ex2},
    {"rcp", rcp},
    {"ld.global.nc.L1::no_allocate.v4", ld_v4},
    {"ld.acquire", ld_acquire},
    {"st.release", st_release},
    {"atom.acq_rel.cta.shared::cta.add.u32", atom_add},
    {"mapa.u64", mapa64},
    {"mapa.shared::cluster.u32", mapa32},
    {"mov.u32 %cluster_ctarank", rank_of_block},
    {"bar.sync", bar_sync},
    {"bar.arrive", bar_arrive},
    {"barrier.cluster.arrive.release.aligned barrier.cluster.wait", cluster_sync_},
    {"barrier.cluster.arrive", cluster_arrive_},
    {"barrier.cluster.wait", cluster_wait_},
    {"elect.sync", elect},
};

instruction::instruction(const char *t) : text(t), f(nullptr) {
    std::string name, s = t;
    for (size_t at = 0; at < s.size();) {
        size_t end = s.find_first_of(";\n", at);
        if (end == std::string::npos) end = s.size();
        std::string one = s.substr(at, end - at);
        at = end + 1;
        size_t b = one.find_first_not_of(" \t{}");
        if (b == std::string::npos) continue;
        one = one.substr(b);
        if (one[0] == '@') one = one.substr(one.find(' ') + 1);
        std::string op = one.substr(0, one.find_first_of(" \t"));
        if (op == ".reg" || op.compare(0, 4, "setp") == 0 || op.compare(0, 4, "selp") == 0)
            continue;
        if (one.find("%%cluster_ctarank") != std::string::npos) op += " %cluster_ctarank";
        if (op.back() == ':') continue;
        name += (name.empty() ? "" : " ") + op;
    }
    if (name.empty()) {
        f = nothing;
        return;
    }
    for (auto &e : table)
        if (name.compare(0, strlen(e.start), e.start) == 0) {
            f = e.f;
            return;
        }
    die("no instruction %s", name.c_str());
}

} // namespace emulate
