/* nearest.h - the known word that was probably meant by an unknown one.
 *
 *     cgs_nearest n = cgs_nearest_to(asked);
 *     for each known word: cgs_nearest_offer(&n, word);
 *     return cgs_fail(CGS_EARG, "unknown verb \"%.80s\"%s", asked, cgs_nearest_hint(&n)); */
#ifndef CGS_CORE_NEAREST_H
#define CGS_CORE_NEAREST_H

typedef struct cgs_nearest {
    const char *asked, *word; /* word: the nearest so far, or NULL */
    int distance;
    char hint[128];
} cgs_nearest;

cgs_nearest cgs_nearest_to(const char *asked);
/* word must live as long as n */
void cgs_nearest_offer(cgs_nearest *n, const char *word);
/* "; did you mean "word"?", or "" where no word is near enough to be meant */
const char *cgs_nearest_hint(cgs_nearest *n);

#endif /* CGS_CORE_NEAREST_H */
