// parquet_files.mjs - Parquet files by writers that are not ours, for tests/io/test_parquet.c and
// tests/cli/cli_convert.sh.
//
//   node tests/parity/parquet_files.mjs FOLDER [MODULES]
//
// MODULES is a node_modules folder with hyparquet-writer (pages of version 2) and, where it is there,
// parquet-wasm and apache-arrow (version 1, lists by Arrow).  What stands in tests/golden/parquet was
// made with hyparquet-writer 0.17, parquet-wasm 0.8 and apache-arrow 21.2.
import { createRequire } from 'node:module'
import { mkdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { pathToFileURL } from 'node:url'
import path from 'node:path'

const [folder, modules = 'node_modules'] = process.argv.slice(2)
const require = createRequire(pathToFileURL(path.resolve(modules, 'x.js')))
const load = async name => import(pathToFileURL(require.resolve(name)))

const rows = [...Array(120).keys()]
const columns = {
  i64: rows.map(r => BigInt(r) * 1000003n),
  i32: rows.map(r => -r),
  f32: rows.map(r => r * 0.5),
  f64: rows.map(r => r / 3),
  truth: rows.map(r => r % 3 === 0),
  few: rows.map(r => r % 4),
  holes: rows.map(r => r % 5 ? r + 0.25 : null),
  fixed: rows.map(r => [r, r + 0.25, -r]),
  ragged: rows.map(r => [...Array(r % 4).keys()].map(i => 10 * r + i)),
  text: rows.map(r => 'row ' + r),
}

const list = (name, type) => [
  { name, repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'OPTIONAL', type },
]
const flat = (name, type, repetition_type = 'REQUIRED') => [{ name, type, repetition_type }]

async function hyparquet(file, data, schema, options) {
  const { parquetWriteBuffer } = await load('hyparquet-writer')
  const columnData = Object.entries(data).map(([name, values]) => ({ name, data: values }))
  const buffer = parquetWriteBuffer({
    columnData, schema: [{ name: 'root', num_children: columnData.length }, ...schema], statistics: false, ...options,
  })
  writeFileSync(path.join(folder, file), Buffer.from(buffer))
}

const schema = [
  ...flat('i64', 'INT64'), ...flat('i32', 'INT32'), ...flat('f32', 'FLOAT'), ...flat('f64', 'DOUBLE'),
  ...flat('truth', 'BOOLEAN'), ...flat('few', 'DOUBLE'), ...flat('holes', 'DOUBLE', 'OPTIONAL'),
  ...list('fixed', 'FLOAT'), ...list('ragged', 'DOUBLE'),
  { name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
]

async function arrow() {
  const a = await load('apache-arrow')
  const w = await load('parquet-wasm')
  const listOf = type => new a.List(new a.Field('element', type, true))
  const table = new a.Table({
    i64: a.vectorFromArray(columns.i64, new a.Int64()), i32: a.vectorFromArray(columns.i32, new a.Int32()),
    f32: a.vectorFromArray(columns.f32, new a.Float32()), f64: a.vectorFromArray(columns.f64, new a.Float64()),
    truth: a.vectorFromArray(columns.truth, new a.Bool()), few: a.vectorFromArray(columns.few, new a.Float64()),
    holes: a.vectorFromArray(columns.holes, new a.Float64()),
    fixed: a.vectorFromArray(columns.fixed, listOf(new a.Float32())),
    ragged: a.vectorFromArray(columns.ragged, listOf(new a.Float64())),
    text: a.vectorFromArray(columns.text, new a.Utf8()),
  })
  for (const codec of ['SNAPPY', 'ZSTD', 'GZIP', 'UNCOMPRESSED']) {
    const wasm = w.Table.fromIPCStream(a.tableToIPC(table, 'stream'))
    const properties = new w.WriterPropertiesBuilder().setCompression(w.Compression[codec])
      .setDictionaryEnabled(codec !== 'GZIP').setMaxRowGroupSize(70).build()
    writeFileSync(path.join(folder, 'arrow_' + codec.toLowerCase() + '.parquet'), w.writeParquet(wasm, properties))
  }
}

// the tables of two LeRobot datasets, versions 2.1 and 3.0: two episodes of 24 rows, ten a second
async function lerobot() {
  const L = 24, all = [...Array(2 * L).keys()]
  const data = rs => ({
    action: rs.map(r => [Math.sin(r), Math.cos(2 * r)]), 'observation.state': rs.map(r => [r, r * r, -r]),
    timestamp: rs.map(r => (r % L) / 10), frame_index: rs.map(r => BigInt(r % L)),
    episode_index: rs.map(r => BigInt(Math.floor(r / L))), index: rs.map(r => BigInt(r)),
    'next.done': rs.map(r => r % L === L - 1), task_index: rs.map(() => 0n),
  })
  const data_schema = [
    ...list('action', 'FLOAT'), ...list('observation.state', 'FLOAT'), ...flat('timestamp', 'FLOAT'),
    ...flat('frame_index', 'INT64'), ...flat('episode_index', 'INT64'), ...flat('index', 'INT64'),
    ...flat('next.done', 'BOOLEAN'), ...flat('task_index', 'INT64'),
  ]
  const features = {
    action: { dtype: 'float32', shape: [2], names: null }, 'observation.state': { dtype: 'float32', shape: [3], names: null },
    'observation.images.front': { dtype: 'video', shape: [48, 64, 3], names: ['height', 'width', 'channel'] },
    timestamp: { dtype: 'float32', shape: [1], names: null }, frame_index: { dtype: 'int64', shape: [1], names: null },
    episode_index: { dtype: 'int64', shape: [1], names: null }, index: { dtype: 'int64', shape: [1], names: null },
    'next.done': { dtype: 'bool', shape: [1], names: null }, task_index: { dtype: 'int64', shape: [1], names: null },
  }
  const info = { robot_type: 'none', total_episodes: 2, total_frames: 2 * L, chunks_size: 1000, fps: 10, features }
  const folders = ['lerobot2/meta', 'lerobot2/data/chunk-000', 'lerobot3/meta/episodes/chunk-000', 'lerobot3/data/chunk-000']
  for (const name of folders) mkdirSync(path.join(folder, name), { recursive: true })
  const save = (file, what) => writeFileSync(path.join(folder, file), JSON.stringify(what, null, 1) + '\n')
  save('lerobot2/meta/info.json', {
    codebase_version: 'v2.1', ...info,
    data_path: 'data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet',
    video_path: 'videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4',
  })
  save('lerobot3/meta/info.json', {
    codebase_version: 'v3.0', ...info, data_path: 'data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet',
    video_path: 'videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4',
  })
  for (const e of [0, 1])
    await hyparquet('lerobot2/data/chunk-000/episode_00000' + e + '.parquet', data(all.slice(e * L, (e + 1) * L)), data_schema)
  await hyparquet('lerobot3/data/chunk-000/file-000.parquet', data(all), data_schema)
  const video = 'videos/observation.images.front/'
  await hyparquet('lerobot3/meta/episodes/chunk-000/file-000.parquet', {
    episode_index: [0n, 1n], tasks: [['push'], ['push']], length: [BigInt(L), BigInt(L)],
    'data/chunk_index': [0n, 0n], 'data/file_index': [0n, 0n], dataset_from_index: [0n, BigInt(L)],
    [video + 'chunk_index']: [0n, 0n], [video + 'file_index']: [0n, 0n],
    [video + 'from_timestamp']: [0, L / 10], [video + 'to_timestamp']: [L / 10, 2 * L / 10],
  }, [
    ...flat('episode_index', 'INT64'), ...list('tasks', 'BYTE_ARRAY'), ...flat('length', 'INT64'),
    ...flat('data/chunk_index', 'INT64'), ...flat('data/file_index', 'INT64'), ...flat('dataset_from_index', 'INT64'),
    ...flat(video + 'chunk_index', 'INT64'), ...flat(video + 'file_index', 'INT64'),
    ...flat(video + 'from_timestamp', 'DOUBLE'), ...flat(video + 'to_timestamp', 'DOUBLE'),
  ])
}

mkdirSync(folder, { recursive: true })
await hyparquet('second_snappy.parquet', columns, schema, { rowGroupSize: 50 })
await hyparquet('second_plain.parquet', columns, schema, { codec: 'UNCOMPRESSED', pageSize: 200 })
await hyparquet('second_gzip.parquet', columns, schema, { codec: 'GZIP', compressors: { GZIP: x => new Uint8Array(gzipSync(x)) } })
await lerobot()
try {
  await arrow()
} catch (e) {
  if (e.code !== 'MODULE_NOT_FOUND') throw e
  console.log('no parquet-wasm here: no pages of version 1')
}
