/* bench_output.c - see bench_output.h. */
#include "cli/bench_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "analysis/document.h"
#include "cli/machine.h"
#include "core/build.h"
#include "core/cpu.h"
#include "core/threads.h"

static void find_conditions(cgs_conditions *c, const cgs_device *d) {
    struct utsname host;
    uname(&host);
    *c = (cgs_conditions){.threads = cgs_threads()};
    snprintf(c->device, sizeof c->device, "%s", d->ops->name);
    snprintf(c->isa, sizeof c->isa, "%s", cgs_isa_name(cgs_cpu_ask()->own));
    snprintf(c->machine, sizeof c->machine, "%s", host.machine);
    snprintf(c->version, sizeof c->version, "%s", cgs_version());
    snprintf(c->commit, sizeof c->commit, "%s", cgs_commit());
    cgs_machine_processor(c->processor, sizeof c->processor, d->ops->kind == CGS_DEVICE_GPU);
}

static void introduce(const cgs_bench_output *o) {
    char differ[1024];
    const cgs_conditions *c = &o->before.conditions;
    cgs_conditions_differ(differ, sizeof differ, &o->conditions, c);
    if (!o->json)
        printf("ratios are to %s (commit %s), with the range of the parts of both measurements\n",
               o->compare, c->commit);
    if (differ[0])
        fprintf(stderr,
                "cgs bench: %s is from another machine or other settings (%s), so ratios do not "
                "compare code alone\n",
                o->compare, differ);
}

cgs_status cgs_bench_output_open(cgs_bench_output *o, const cgs_device *d, const char *save,
                                 const char *compare) {
    o->compare = compare;
    o->rc = CGS_OK;
    find_conditions(&o->conditions, d);
    if (compare) CGS_TRY(cgs_figures_read(&o->before, compare));
    if (save) {
        cgs_status rc = cgs_newfile_open(&o->file, save);
        if (rc != CGS_OK) {
            cgs_figures_free(&o->before);
            return rc;
        }
        o->saves = true;
    }
    if (compare) introduce(o);
    return CGS_OK;
}

/* what a ratio above or below 1 means */
static const char *direction(const char *unit, bool more) {
    bool time = !strcmp(unit, "s") || !strcmp(unit, "ms") || !strcmp(unit, "us");
    if (time) return more ? "slower" : "faster";
    if (strstr(unit, "/s")) return more ? "faster" : "slower";
    return more ? "more" : "less";
}

/* figures that may be 0 or negative have no ratio then */
static bool has_ratio(cgs_measured m) { return m.least > 0; }

static void print_line(const cgs_figure *f, const cgs_figure *old, const cgs_measured *ratio) {
    printf("  %-58s %12.5g %s", f->name, f->m.value, f->unit);
    if (old && !ratio) printf("  (%.5g)", old->m.value);
    if (ratio && ratio->runs == 1) printf("  %.3f times (spread unknown)", ratio->value);
    if (ratio && ratio->runs != 1)
        printf("  %.3f times (%.3f to %.3f)", ratio->value, ratio->least, ratio->most);
    if (ratio && cgs_ratio_differs(*ratio)) printf("  %s", direction(f->unit, ratio->value > 1));
    printf("\n");
}

static void print_json(const cJSON *line, const cgs_figure *old, const cgs_measured *ratio,
                       cgs_status *rc) {
    cJSON *shown = cJSON_Duplicate(line, true);
    if (old) cgs_document_number(shown, "before", old->m.value);
    if (ratio) {
        cgs_document_number(shown, "ratio", ratio->value);
        cgs_document_number(shown, "ratio_least", ratio->least);
        cgs_document_number(shown, "ratio_most", ratio->most);
        cJSON_AddBoolToObject(shown, "differs", cgs_ratio_differs(*ratio));
    }
    if (*rc == CGS_OK) *rc = cgs_document_print(shown, stdout);
    cJSON_Delete(shown);
}

void cgs_bench_output_add(void *user, const char *name, cgs_measured m, const char *unit) {
    cgs_bench_output *o = user;
    cgs_figure f = {.m = m};
    snprintf(f.bench, sizeof f.bench, "%s", o->bench);
    snprintf(f.name, sizeof f.name, "%s", name);
    snprintf(f.unit, sizeof f.unit, "%s", unit);
    const cgs_figure *old = cgs_figures_take(&o->before, &f);
    bool both = old && has_ratio(old->m) && has_ratio(m);
    cgs_measured ratio = both ? cgs_measured_ratio(m, old->m) : cgs_measured_once(1);
    o->compared += both;
    o->differ += cgs_ratio_differs(ratio);
    cJSON *line = cgs_figure_json(&f, &o->conditions);
    if (o->json)
        print_json(line, old, both ? &ratio : NULL, &o->rc);
    else
        print_line(&f, old, both ? &ratio : NULL);
    if (o->saves && o->rc == CGS_OK) o->rc = cgs_document_print(line, o->file.f);
    cJSON_Delete(line);
    fflush(stdout);
}

static void print_choice(void *user, const cgs_bench_choice *c) {
    cgs_bench_output *o = user;
    if (!o->json) {
        printf("  product %-50s %-14s %s\n", c->product, c->code, c->why);
        return;
    }
    cJSON *line = cJSON_CreateObject();
    cgs_document_text_field(line, "bench", o->bench);
    cgs_document_text_field(line, "product", c->product);
    cgs_document_text_field(line, "code", c->code);
    cgs_document_text_field(line, "why", c->why);
    if (o->rc == CGS_OK) o->rc = cgs_document_print(line, stdout);
    cJSON_Delete(line);
}

void cgs_bench_output_choices(cgs_bench_output *o, const cgs_device *d) {
    cgs_bench_choices(d, print_choice, o);
}

cgs_status cgs_bench_output_close(cgs_bench_output *o, cgs_status rc) {
    int left = 0;
    for (int i = 0; i < o->before.count; i++) left += !o->before.at[i].taken;
    if (rc == CGS_OK) rc = o->rc;
    if (rc == CGS_OK && o->compare && !o->json)
        printf("%d of %d ratios differ from 1 by more than their spread; %d figures of %s were not "
               "measured\n",
               o->differ, o->compared, left, o->compare);
    cgs_figures_free(&o->before);
    if (!o->saves) return rc;
    if (rc == CGS_OK) return cgs_newfile_commit(&o->file);
    cgs_newfile_abandon(&o->file);
    return rc;
}
