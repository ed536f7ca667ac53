/* report.c - see report.h. */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/claims.h"
#include "report/method.h"
#include "report/sections.h"
#include "report/tables.h"

/* draws a run and keeps in `of` what the tables of all runs need */
static void draw_run(cgs_page *p, const cgs_folder *f, cgs_tables_run *of, char *verdict,
                     size_t size) {
    cgs_rates *rates = &of->rates;
    cgs_rates_read(rates, f, p);
    of->path = f->path;
    snprintf(of->folder, sizeof of->folder, "%s", f->last);
    if (p->run) {
        cgs_text_put(&p->nav, "<b>");
        cgs_text_escape(&p->nav, f->name);
        cgs_text_put(&p->nav, "</b>\n");
    }
    cgs_section_verdict(p, f, rates, verdict, size);
    cgs_section_frozen(p, f, rates);
    cgs_section_architectures(p, f, rates);
    cgs_section_success(p, f, rates);
    cgs_section_rollouts(p, f, rates);
    cgs_section_sweeps(p, f, rates);
    cgs_section_ablations(p, f, rates);
    cgs_section_geometry(p, f);
    cgs_section_mechanism(p, f);
    of->priors = cgs_section_priors(p, f, rates);
    cgs_section_plans(p, f);
    of->models = cgs_section_training(p, f, of->model);
    cgs_section_learned(p, f);
    cgs_section_probe(p, f);
    cgs_section_theory(p, f);
    cgs_section_decode(p, f);
    cgs_section_surprise(p, f);
    cgs_section_timing(p, f, rates);
    cgs_section_stages(p, f);
}

cgs_status cgs_report_write(const cgs_report_options *o, cgs_report_summary *out) {
    cgs_page p = {.warn = o->warn, .user = o->user};
    cgs_status rc = CGS_OK;
    char title[256] = "";
    memset(out, 0, sizeof *out);
    cgs_tables_run *kept = calloc((size_t)o->count, sizeof *kept);
    if (!kept) rc = cgs_fail(CGS_ENOMEM, "report: no memory for %d runs", o->count);
    for (int i = 0; i < o->count && rc == CGS_OK; i++) {
        cgs_folder f;
        char verdict[512];
        rc = cgs_folder_open(&f, o->runs[i], &p);
        if (rc == CGS_OK) {
            int before = p.sections;
            p.runs = i;
            p.run = o->count > 1 ? f.name : NULL;
            draw_run(&p, &f, &kept[i], verdict, sizeof verdict);
            kept[i].stages = f.stages;
            f.stages = NULL;
            if (i == 0) snprintf(out->verdict, sizeof out->verdict, "%s", verdict);
            if (i == 0) snprintf(title, sizeof title, "%.120s", f.name);
            if (i > 0 && strlen(title) < 120)
                snprintf(title + strlen(title), sizeof title - strlen(title), ", %.100s", f.name);
            if (p.sections == before)
                rc = cgs_fail(CGS_EFORMAT,
                              "%s: nothing to report: no results, no metrics, no "
                              "geometry or other files of a run%s",
                              o->runs[i], p.warnings ? " that could be read" : "");
        }
        p.run = NULL;
        cgs_folder_close(&f);
    }
    const char *head = o->title ? o->title : title;
    if (rc == CGS_OK) rc = cgs_page_write(&p, o->out, head);
    if (rc == CGS_OK && o->tables)
        rc = cgs_tables_write(kept, o->count, head, o->tables, &out->tables);
    if (rc == CGS_OK && o->claims) rc = cgs_claims_write(kept, o->count, o->claims);
    for (int i = 0; kept && i < o->count; i++) {
        cgs_rates_free(&kept[i].rates);
        cJSON_Delete(kept[i].stages);
        cJSON_Delete(kept[i].priors);
    }
    free(kept);
    out->sections = p.sections;
    out->figures = p.figures;
    out->warnings = p.warnings;
    cgs_page_free(&p);
    return rc;
}
