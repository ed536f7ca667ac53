/* video.c - see video.h.
 *
 * Compiled with libav's headers, which load nothing; the libraries themselves, with the hundred
 * that they bring along, are loaded when the first video is opened. */
#include "io/video.h"

#ifndef CGS_WITH_LIBAV

cgs_status cgs_video_open(cgs_video **out, const char *path) {
    *out = NULL;
    return cgs_fail(CGS_EARG,
                    "%s: this build cannot read videos: install libavformat-dev, libavcodec-dev, "
                    "libavutil-dev and libswscale-dev (scripts/setup.sh does) and run make again",
                    path);
}
void cgs_video_close(cgs_video *v) { (void)v; }
double cgs_video_rate(const cgs_video *v) { return (void)v, 0; }
cgs_status cgs_video_next(cgs_video *v, cgs_video_frame *frame, bool *more) {
    (void)v, (void)frame, (void)more;
    return cgs_fail(CGS_EARG, "this build cannot read videos");
}

#else

#include <dlfcn.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* what is called of libav, by the library it is in */
#define FUNCTIONS(X)                                                                               \
    X(format, avformat_open_input)                                                                 \
    X(format, avformat_find_stream_info)                                                           \
    X(format, av_find_best_stream)                                                                 \
    X(format, avformat_close_input)                                                                \
    X(format, av_read_frame)                                                                       \
    X(codec, avcodec_alloc_context3)                                                               \
    X(codec, avcodec_parameters_to_context)                                                        \
    X(codec, avcodec_open2)                                                                        \
    X(codec, avcodec_free_context)                                                                 \
    X(codec, av_packet_alloc)                                                                      \
    X(codec, av_packet_free)                                                                       \
    X(codec, av_packet_unref)                                                                      \
    X(codec, avcodec_send_packet)                                                                  \
    X(codec, avcodec_receive_frame)                                                                \
    X(scale, sws_getContext)                                                                       \
    X(scale, sws_freeContext)                                                                      \
    X(scale, sws_scale)                                                                            \
    X(scale, sws_getCoefficients)                                                                  \
    X(scale, sws_setColorspaceDetails)                                                             \
    X(util, av_strerror)                                                                           \
    X(util, av_dict_set)                                                                           \
    X(util, av_dict_free)                                                                          \
    X(util, av_frame_alloc)                                                                        \
    X(util, av_frame_free)                                                                         \
    X(util, av_log_set_level)

#define POINTER(library, name) __typeof__(name) *name;
static struct { FUNCTIONS(POINTER) } av;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[128]; /* what could not be loaded, or "" */

static void *load(const char *name, int version) {
    char file[64];
    snprintf(file, sizeof file, "lib%s.so.%d", name, version);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library && !*missing) snprintf(missing, sizeof missing, "%s", file);
    return library;
}

static void *find(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found && !*missing) snprintf(missing, sizeof missing, "%s", name);
    return found;
}

/* ISO C has no cast from a pointer to data to one to a function */
#define FIND(library, name)                                                                        \
    do {                                                                                           \
        void *found_ = find(library, #name);                                                       \
        memcpy(&av.name, &found_, sizeof found_);                                                  \
    } while (0);

/* The versions whose headers this was compiled with; they stay loaded. */
static void load_all(void) {
    void *util = load("avutil", LIBAVUTIL_VERSION_MAJOR);
    void *codec = load("avcodec", LIBAVCODEC_VERSION_MAJOR);
    void *format = load("avformat", LIBAVFORMAT_VERSION_MAJOR);
    void *scale = load("swscale", LIBSWSCALE_VERSION_MAJOR);
    FUNCTIONS(FIND)
    if (!*missing) av.av_log_set_level(AV_LOG_QUIET); /* it would write to standard error */
}

enum { LONGEST_SIDE = 8192 };

struct cgs_video {
    char path[4096];
    AVFormatContext *format;
    AVCodecContext *codec;
    struct SwsContext *scale;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    bool drained;
    uint8_t *rgb; /* (height, width, 3) */
    int width, height, pixel_format;
};

static cgs_status broken(const cgs_video *v, const char *what, int code) {
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    av.av_strerror(code, why, sizeof why);
    return cgs_fail(CGS_EFORMAT, "%s: %s (%s)", v->path, what, why);
}

static cgs_status open_stream(cgs_video *v) {
    /* containers that hold what they show; no playlists, which would name other files */
    AVDictionary *options = NULL;
    av.av_dict_set(&options, "protocol_whitelist", "file", 0);
    av.av_dict_set(&options, "format_whitelist",
                   "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,ogg,flv,gif", 0);
    char url[4200];
    snprintf(url, sizeof url, "file:%s", v->path);
    int rc = av.avformat_open_input(&v->format, url, NULL, &options);
    av.av_dict_free(&options);
    if (rc < 0) return broken(v, "not a video that can be read", rc);
    rc = av.avformat_find_stream_info(v->format, NULL);
    if (rc < 0) return broken(v, "its streams cannot be read", rc);
    const AVCodec *decoder = NULL;
    v->stream = av.av_find_best_stream(v->format, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    if (v->stream < 0 || !decoder) return broken(v, "no stream of pictures", v->stream);
    const AVCodecParameters *p = v->format->streams[v->stream]->codecpar;
    if (p->width < 1 || p->height < 1 || p->width > LONGEST_SIDE || p->height > LONGEST_SIDE)
        return cgs_fail(CGS_EFORMAT, "%s: pictures of %d x %d", v->path, p->width, p->height);
    v->codec = av.avcodec_alloc_context3(decoder);
    v->packet = av.av_packet_alloc();
    v->frame = av.av_frame_alloc();
    if (!v->codec || !v->packet || !v->frame) return cgs_fail(CGS_ENOMEM, "%s: no memory", v->path);
    v->codec->max_pixels = (int64_t)LONGEST_SIDE * LONGEST_SIDE;
    rc = av.avcodec_parameters_to_context(v->codec, p);
    if (rc >= 0) rc = av.avcodec_open2(v->codec, decoder, NULL);
    return rc < 0 ? broken(v, "its pictures cannot be decoded", rc) : CGS_OK;
}

cgs_status cgs_video_open(cgs_video **out, const char *path) {
    *out = NULL;
    pthread_once(&once, load_all);
    if (*missing)
        return cgs_fail(CGS_EIO, "%s: libav (FFmpeg) cannot be loaded: no %s", path, missing);
    cgs_video *v = calloc(1, sizeof *v);
    if (!v) return cgs_fail(CGS_ENOMEM, "%s: no memory", path);
    cgs_status rc = CGS_OK;
    if ((size_t)snprintf(v->path, sizeof v->path, "%s", path) >= sizeof v->path)
        rc = cgs_fail(CGS_EARG, "%.64s...: path is too long", path);
    if (rc == CGS_OK) rc = open_stream(v);
    if (rc != CGS_OK) {
        cgs_video_close(v);
        return rc;
    }
    *out = v;
    return CGS_OK;
}

void cgs_video_close(cgs_video *v) {
    if (!v) return;
    av.sws_freeContext(v->scale);
    av.av_frame_free(&v->frame);
    av.av_packet_free(&v->packet);
    av.avcodec_free_context(&v->codec);
    av.avformat_close_input(&v->format);
    free(v->rgb);
    free(v);
}

double cgs_video_rate(const cgs_video *v) {
    AVRational r = v->format->streams[v->stream]->avg_frame_rate;
    return r.num > 0 && r.den > 0 ? av_q2d(r) : 0;
}

/* how brightness and colour are stored, where the video says so; else as old television */
static void set_colours(cgs_video *v) {
    int space = v->frame->colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_ITU601;
    int full = v->frame->color_range == AVCOL_RANGE_JPEG;
    av.sws_setColorspaceDetails(v->scale, av.sws_getCoefficients(space), full,
                                av.sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16);
}

static cgs_status to_rgb(cgs_video *v, cgs_video_frame *out) {
    const AVFrame *f = v->frame;
    if (!v->scale || f->width != v->width || f->height != v->height ||
        f->format != v->pixel_format) {
        if (f->width < 1 || f->height < 1 || f->width > LONGEST_SIDE || f->height > LONGEST_SIDE)
            return cgs_fail(CGS_EFORMAT, "%s: a picture of %d x %d", v->path, f->width, f->height);
        v->width = f->width;
        v->height = f->height;
        v->pixel_format = f->format;
        av.sws_freeContext(v->scale);
        free(v->rgb);
        /* some of its loops write a little beyond a row */
        v->rgb = malloc((size_t)f->width * (size_t)f->height * 3 + 64);
        v->scale = av.sws_getContext(
            f->width, f->height, (enum AVPixelFormat)f->format, f->width, f->height,
            AV_PIX_FMT_RGB24, SWS_POINT | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT,
            NULL, NULL, NULL);
        if (!v->rgb || !v->scale)
            return cgs_fail(CGS_EFORMAT, "%s: pictures of a kind that cannot be converted",
                            v->path);
        set_colours(v);
    }
    uint8_t *to[4] = {v->rgb};
    int stride[4] = {3 * v->width};
    av.sws_scale(v->scale, (const uint8_t *const *)f->data, f->linesize, 0, f->height, to, stride);
    const AVStream *s = v->format->streams[v->stream];
    int64_t begin = s->start_time == AV_NOPTS_VALUE ? 0 : s->start_time;
    int64_t at = f->best_effort_timestamp == AV_NOPTS_VALUE ? begin : f->best_effort_timestamp;
    *out =
        (cgs_video_frame){v->rgb, v->width, v->height, (double)(at - begin) * av_q2d(s->time_base)};
    return CGS_OK;
}

/* gives the decoder the next packet, or the news that there is none */
static cgs_status feed(cgs_video *v) {
    int rc = av.av_read_frame(v->format, v->packet);
    if (rc == AVERROR_EOF) {
        v->drained = true;
        av.avcodec_send_packet(v->codec, NULL);
        return CGS_OK;
    }
    if (rc < 0) return broken(v, "damaged", rc);
    if (v->packet->stream_index == v->stream) rc = av.avcodec_send_packet(v->codec, v->packet);
    av.av_packet_unref(v->packet);
    return rc < 0 && rc != AVERROR(EAGAIN) ? broken(v, "damaged", rc) : CGS_OK;
}

cgs_status cgs_video_next(cgs_video *v, cgs_video_frame *frame, bool *more) {
    for (;;) {
        int rc = av.avcodec_receive_frame(v->codec, v->frame);
        *more = rc >= 0;
        if (rc >= 0) return to_rgb(v, frame);
        if (rc == AVERROR_EOF || (v->drained && rc == AVERROR(EAGAIN))) return CGS_OK;
        if (rc != AVERROR(EAGAIN)) return broken(v, "damaged", rc);
        CGS_TRY(feed(v));
    }
}

#endif
