// Draws a dashboard's JSON over a Prometheus's data with Grafana's own components, without a Grafana:
// ?board=heatsoak-fleet&theme=dark&prometheus=http://…&hours=2&end=1700000000&var-node=…
// Timelines of states are drawn here: Grafana keeps that panel in its server, not in @grafana/ui.
import React, { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { lastValueFrom } from 'rxjs';
import {
  applyFieldOverrides, createTheme, DataFrame, dateTime, FieldConfigOptionsRegistry, FieldType, getFieldDisplayValues,
  identityOverrideProcessor, standardTransformers, standardTransformersRegistry, ThemeContext, toDataFrame, transformDataFrame,
} from '@grafana/data';
import {
  BarGauge, BigValue, BigValueColorMode, BigValueGraphMode, BigValueTextMode, GlobalStyles, LegendDisplayMode, PanelChrome,
  Table, TimeSeries,
} from '@grafana/ui';

const given = new URLSearchParams(location.search);
const theme = createTheme({ colors: { mode: given.get('theme') === 'light' ? 'light' : 'dark' } });
const prometheus = given.get('prometheus') ?? 'http://127.0.0.1:9090';
const hours = Number(given.get('hours') ?? 2);
const end = Number(given.get('end') ?? Date.now() / 1000);
const start = end - hours * 3600;
const step = Math.max(15, Math.round((hours * 3600) / 480));
const WIDTH = Number(given.get('width') ?? 1600);
const CELL = 38;

standardTransformersRegistry.setInit(() =>
  [...new Map(Object.values(standardTransformers).map((one: any) => [one.id, one])).values()].map((one: any) => ({
    id: one.id, aliasIds: one.aliasIds, name: one.name, transformation: one, description: '', editor: (() => null) as any,
    imageDark: '', imageLight: '',
  })) as any,
);
const registry = new FieldConfigOptionsRegistry();
const plain = ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds', 'mappings', 'noValue', 'links'];
const custom = [
  'lineWidth', 'fillOpacity', 'thresholdsStyle', 'drawStyle', 'stacking', 'showPoints', 'spanNulls', 'axisPlacement',
  'lineInterpolation', 'gradientMode', 'lineStyle', 'cellOptions', 'align', 'width', 'minWidth', 'inspect', 'axisSoftMin', 'axisSoftMax',
];
const item = (id: string, path: string, isCustom: boolean) =>
  ({ id, path, isCustom, name: path, process: identityOverrideProcessor, shouldApply: () => true, override: identityOverrideProcessor, editor: (() => null) as any }) as any;
plain.forEach((id) => registry.register(item(id, id, false)));
custom.forEach((id) => registry.register(item(`custom.${id}`, id, true)));

const variables: Record<string, string> = {
  cluster: '.*', rack: '.*', node: '.*', model: '.*', card: '.*', serial: '.*', uuid: '.*',
  __rate_interval: '2m', __range: `${hours}h`,
};
given.forEach((value, key) => { if (key.startsWith('var-')) variables[key.slice(4)] = value; });
const filled = (text: string) => text.replace(/\$(\w+)/g, (all, name) => variables[name] ?? all);

async function ask(target: any): Promise<any[]> {
  const parts: Record<string, string> = target.instant
    ? { query: filled(target.expr), time: String(end) }
    : { query: filled(target.expr), start: String(start), end: String(end), step: String(step) };
  const kind = target.instant ? 'query' : 'query_range';
  const answer = await (await fetch(`${prometheus}/api/v1/${kind}?${new URLSearchParams(parts)}`)).json();
  if (answer.status !== 'success') throw new Error(answer.error);
  return answer.data.resultType === 'scalar' ? [{ metric: {}, value: answer.data.result }] : answer.data.result;
}

const named = (legend: string, labels: Record<string, string>) =>
  legend === '__auto' ? JSON.stringify(labels) : legend.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, key) => labels[key] ?? '').trim();

function asTable(target: any, rows: any[], many: boolean): DataFrame {
  const labels = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))].sort();
  const value = many ? `Value #${target.refId}` : 'Value';
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map((row) => row.value[0] * 1000) },
      ...labels.map((name) => ({ name, type: FieldType.string, values: rows.map((row) => row.metric[name] ?? '') })),
      { name: value, type: FieldType.number, values: rows.map((row) => Number(row.value[1])) },
    ],
  });
}

function asSeries(target: any, row: any): DataFrame {
  const points: [number, string][] = row.values ?? [row.value];
  const name = named(target.legendFormat, row.metric);
  const times: number[] = [], values: (number | null)[] = [];
  let last = 0;
  for (const [time, value] of points) {
    if (last && time - last > step * 1.5) { times.push((last + step) * 1000); values.push(null); }
    times.push(time * 1000); values.push(Number(value)); last = time;
  }
  return toDataFrame({
    refId: target.refId, name,
    fields: [
      { name: 'Time', type: FieldType.time, values: times },
      { name: 'Value', type: FieldType.number, labels: row.metric, config: { displayNameFromDS: name }, values },
    ],
  });
}

async function frames(panel: any): Promise<DataFrame[]> {
  let found: DataFrame[] = [];
  for (const target of panel.targets) {
    const rows = await ask(target);
    if (target.format === 'table') { if (rows.length) found.push(asTable(target, rows, panel.targets.length > 1)); }
    else found.push(...rows.map((row: any) => asSeries(target, row)));
  }
  if (panel.transformations) {
    found = await lastValueFrom(transformDataFrame(panel.transformations, found, { interpolate: (text: string) => text } as any));
  }
  return applyFieldOverrides({
    data: found, fieldConfig: panel.fieldConfig, theme, replaceVariables: (text: string) => text, timeZone: 'utc',
    fieldConfigRegistry: registry as any,
  });
}

function Timeline({ data, panel, width, height }: any) {
  const words: any = panel.fieldConfig.defaults.mappings?.[0]?.options ?? {};
  const left = 24 + 7 * Math.max(...data.map((frame: any) => frame.name.length)), bottom = 46, row = Math.min(34, (height - bottom) / Math.max(1, data.length));
  const x = (ms: number) => left + ((ms / 1000 - start) / (end - start)) * (width - left - 4);
  const ticks = Array.from({ length: 7 }, (_, at) => start + ((end - start) * at) / 6);
  return (
    <svg width={width} height={height} style={{ font: '12px Inter, DejaVu Sans, sans-serif' }}>
      {data.map((frame: any, at: number) => {
        const [times, values] = [frame.fields[0].values, frame.fields[1].values];
        return (
          <g key={at}>
            <text x={left - 8} y={at * row + row / 2 + 4} textAnchor="end" fill={theme.colors.text.primary}>{frame.name}</text>
            {times.map((time: number, i: number) => {
              if (values[i] === null) return null;
              const word = words[String(values[i])] ?? { color: panel.fieldConfig.defaults.thresholds.steps[0].color };
              const color = theme.visualization.getColorByName(word.color);
              return <rect key={i} x={x(time)} y={at * row + 2} width={Math.max(1, x(time + step * 1000) - x(time) + 0.6)} height={row - 4} fill={color} opacity={0.85} />;
            })}
          </g>
        );
      })}
      {ticks.map((time, at) => (
        <text key={at} x={Math.min(x(time * 1000), width - 20)} y={data.length * row + 16} textAnchor="middle" fill={theme.colors.text.secondary}>
          {new Date(time * 1000).toISOString().slice(11, 16)}
        </text>
      ))}
      <g transform={`translate(0, ${height - 14})`}>
        {Object.values(words).map((word: any, at: number) => (
          <g key={at} transform={`translate(${at * 155}, 0)`}>
            <rect x={4} y={-9} width={14} height={8} rx={2} fill={theme.visualization.getColorByName(word.color)} />
            <text x={24} y={0} fill={theme.colors.text.secondary}>{word.text}</text>
          </g>
        ))}
      </g>
    </svg>
  );
}

const displayed = (panel: any, data: DataFrame[]) =>
  getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text: string) => text, theme,
    data, sparkline: false, timeZone: 'utc',
  } as any);

function Body({ panel, data, width, height }: any) {
  if (!data.length || data.every((frame: DataFrame) => !frame.length)) {
    return <div style={{ display: 'flex', height, alignItems: 'center', justifyContent: 'center', textAlign: 'center', color: theme.colors.text.secondary, padding: 16 }}>{panel.fieldConfig.defaults.noValue}</div>;
  }
  if (panel.type === 'timeseries') {
    const range = { from: dateTime(start * 1000), to: dateTime(end * 1000), raw: { from: `now-${hours}h`, to: 'now' } };
    return <TimeSeries frames={data} structureRev={1} width={width} height={height} timeRange={range as any} timeZone="utc"
      legend={{ showLegend: true, displayMode: LegendDisplayMode.List, placement: 'bottom', calcs: [] } as any} />;
  }
  if (panel.type === 'state-timeline') return <Timeline data={data} panel={panel} width={width} height={height} />;
  if (panel.type === 'table') {
    return <Table data={data[0]} width={width} height={height} cellHeight={'sm' as any} initialSortBy={[]} />;
  }
  const values = displayed(panel, data);
  if (panel.type === 'stat') {
    const text = panel.options.textMode === 'name' ? BigValueTextMode.Name : BigValueTextMode.ValueAndName;
    return <div style={{ display: 'flex', gap: 4 }}>{values.map((one, at) =>
      <BigValue key={at} theme={theme} value={one.display} textMode={text} graphMode={BigValueGraphMode.None} colorMode={BigValueColorMode.Background}
        width={width / values.length - 4} height={height} />)}</div>;
  }
  const each = Math.min(44, height / values.length);
  return <div>{values.map((one, at) =>
    <BarGauge key={at} theme={theme} value={one.display} field={one.field as any} width={width} height={each - 4} orientation={'horizontal' as any}
      displayMode={'basic' as any} valueDisplayMode={'color' as any} namePlacement={'left' as any} itemSpacing={4} lcdCellWidth={12} alignmentFactors={{ ...one.display, title: 'gpu-r07-n12 GPU 5 resnet50 bf16', text: '100.0%' } as any} />)}</div>;
}

function Panel({ panel, width, height }: any) {
  const [data, setData] = useState<DataFrame[] | null>(null);
  const [error, setError] = useState('');
  useEffect(() => { frames(panel).then(setData, (reason) => setError(String(reason))); }, []);
  return (
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height} statusMessage={error || undefined}>
      {(w: number, h: number) => error ? <div data-error>{error}</div> : data && <div data-drawn><Body panel={panel} data={data} width={w} height={h} /></div>}
    </PanelChrome>
  );
}

function Board({ board }: any) {
  const unit = (WIDTH - 16) / 24;
  const bottom = Math.max(...board.panels.map((panel: any) => panel.gridPos.y + panel.gridPos.h));
  return (
    <div style={{ position: 'relative', width: WIDTH, height: bottom * CELL + 64, background: theme.colors.background.canvas, color: theme.colors.text.primary }}>
      <div style={{ padding: '14px 16px', fontSize: 20 }}>{board.title}</div>
      {board.panels.map((panel: any) => {
        const { x, y, w, h } = panel.gridPos;
        const place = { position: 'absolute', left: x * unit + 8, top: y * CELL + 52 } as const;
        if (panel.type === 'row') return <div key={panel.id} style={{ ...place, fontWeight: 500, padding: '8px 0' }}>⌄ {panel.title}</div>;
        return <div key={panel.id} style={place}><Panel panel={panel} width={w * unit - 8} height={h * CELL - 8} /></div>;
      })}
    </div>
  );
}

(async () => {
  const board = await (await fetch(`/dashboards/${given.get('board')}.json`)).json();
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={theme}><GlobalStyles /><Board board={board} /></ThemeContext.Provider>,
  );
})();
