// A model's ONNX files, run by onnxruntime-web: its latents and costs beside those of cgs.
//
//   node tests/parity/onnx_run.mjs pictures FOLDER SIZE COUNT        makes PNG files and their pixels
//   node tests/parity/onnx_run.mjs compare FOLDER SIZE MODULES       the rest of FOLDER is made by cgs:
//     graphs/{encoder,predictor}.onnx, plans.txt, encode.jsonl, rollout.jsonl
//
// MODULES is a node_modules folder with onnxruntime-web.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { deflateSync } from 'node:zlib'
import { resolve } from 'node:path'

const [what, folder, side, last] = process.argv.slice(2)
const S = Number(side)
const lines = (name) => readFileSync(`${folder}/${name}`, 'utf8').trim().split('\n')

function crc32(bytes) {
  let c = ~0
  for (const b of bytes) {
    c ^= b
    for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (0xEDB88320 & -(c & 1))
  }
  return ~c >>> 0
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}

function png(pixels) {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(S, 0)
  head.writeUInt32BE(S, 4)
  head.set([8, 2, 0, 0, 0], 8)
  const rows = Buffer.alloc(S * (3 * S + 1)) // each after the number of its filter, none
  for (let y = 0; y < S; y++) pixels.copy(rows, y * (3 * S + 1) + 1, y * 3 * S, (y + 1) * 3 * S)
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))])
}

// smooth colours with some noise, all different
function picture(n) {
  const out = Buffer.alloc(3 * S * S)
  let r = 12345 + n
  for (let i = 0; i < out.length; i++) {
    r = (Math.imul(r, 1664525) + 1013904223) >>> 0
    const x = Math.floor(i / 3) % S, y = Math.floor(i / 3 / S)
    out[i] = 127 + 90 * Math.sin((n + 1) * (x + 2 * (i % 3)) / 9) * Math.cos(y / (5 + n)) + (r >>> 27)
  }
  return out
}

function pictures(count) {
  for (let n = 0; n < count; n++) {
    writeFileSync(`${folder}/p${n}.png`, png(picture(n)))
    writeFileSync(`${folder}/p${n}.rgb`, picture(n))
  }
}

let worst = 0
function near(got, want, name) {
  let d = 0, n = 0
  for (let i = 0; i < want.length; i++) {
    d += (got[i] - want[i]) ** 2
    n += want[i] ** 2
  }
  const error = Math.sqrt(d / n)
  worst = Math.max(worst, error)
  if (got.length !== want.length || !(error <= 1e-4)) throw new Error(`${name}: relative error ${error}`)
}

async function compare(modules) {
  const ort = createRequire(resolve(modules) + '/')('onnxruntime-web')
  ort.env.wasm.numThreads = 1
  const open = (name) => ort.InferenceSession.create(new Uint8Array(readFileSync(`${folder}/graphs/${name}.onnx`)))
  const [encoder, predictor] = [await open('encoder'), await open('predictor')]
  const config = JSON.parse(lines('config').join('\n')).cgs.sizes
  const D = config['model.width'], N = config['model.history']
  const block = config['model.action_dim'] * config['model.frameskip']

  // all pictures at once
  const told = lines('encode.jsonl').map(JSON.parse)
  const F = told.length, pixels = new Uint8Array(F * 3 * S * S)
  for (let n = 0; n < F; n++) pixels.set(readFileSync(`${folder}/p${n}.rgb`), n * 3 * S * S)
  const { latent } = await encoder.run({ pixels: new ort.Tensor('uint8', pixels, [F, S, S, 3]) })
  for (let n = 0; n < F; n++) near(latent.data.subarray(n * D, (n + 1) * D), told[n].z, `latent ${n}`)

  // predictions are fed back, as in cgs rollout: all plans at once, from picture 0, with the goal 1
  const plans = lines('plans.txt').map((l) => l.split(',').map(Number))
  const B = plans.length, H = plans[0].length / block
  const z = [Array.from({ length: B }, () => latent.data.subarray(0, D))]
  for (let s = 0; s < H; s++) {
    const T = Math.min(s + 1, N), from = s + 1 - T
    const latents = new Float32Array(B * T * D), actions = new Float32Array(B * T * block)
    for (let b = 0; b < B; b++)
      for (let t = 0; t < T; t++) {
        latents.set(z[from + t][b], (b * T + t) * D)
        actions.set(plans[b].slice((from + t) * block, (from + t + 1) * block), (b * T + t) * block)
      }
    const out = await predictor.run({ latents: new ort.Tensor('float32', latents, [B, T, D]),
      actions: new ort.Tensor('float32', actions, [B, T, block]) })
    z.push(Array.from({ length: B }, (_, b) => out.prediction.data.slice((b * T + T - 1) * D, (b + 1) * T * D)))
  }
  const goal = latent.data.subarray(D, 2 * D)
  lines('rollout.jsonl').map(JSON.parse).forEach((want, b) => {
    const cost = z[H][b].reduce((sum, v, i) => sum + (v - goal[i]) ** 2, 0)
    near(z[H][b], want.terminal, `terminal latent ${b}`)
    near([cost], [want.cost], `cost ${b}`)
  })
  console.log(`${F} latents, ${B} plans of ${H} steps: largest relative error ${worst.toExponential(1)}`)
}

if (what === 'pictures') pictures(Number(last))
else await compare(last)
