// Selection of series, a linear axis, values under the pointer, downloads. All figures are readable without the script.
(() => {
'use strict';
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);
document.documentElement.classList.add('script');
const series = new Map(JSON.parse(one('#figures').textContent).map(
  ([id, label, condition, sent, lost, p50, max, floor, papers]) => [id, { id, label, condition, sent, lost, p50, max, floor, papers }]));

// Numbers, formatted as on the page.
const thin = '\u202f';
const grouped = n => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, thin);
const UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];
const unitOf = ns => UNITS.find(([, size]) => ns >= size) || UNITS[3];
const span = ns => {
  const [name, size] = unitOf(ns), value = ns / size;
  return (size === 1 || value >= 100 ? grouped(value) : value.toFixed(value < 10 ? 2 : 1)) + ' ' + name;
};
const round = ns => { if (!ns) return '0'; const [name, size] = unitOf(ns); return +(ns / size).toFixed(3) + ' ' + name; };

// The outline of a profile: corners as [lg t, m], read from the path that the page draws.
const outlines = new Map();
function corners(id) {
  if (outlines.has(id)) return outlines.get(id);
  const points = [];
  let x = 0, y = 0;
  for (const [, step, a, b] of one('#p' + id).getAttribute('d').matchAll(/([Mhvl])(-?\d+)(?: (-?\d+))?/g)) {
    if (step === 'M') { x = +a; y = +b; }
    else if (step === 'h') x += +a;
    else if (step === 'v') y += +a;
    else { x += +a; y += +b; }
    points.push([x / 1e5, Math.pow(10, -y / 1000)]);
  }
  outlines.set(id, points);
  return points;
}
// How many frames took longer than t.
function slower(id, lgT) {
  const points = corners(id);
  if (!points.length || lgT < points[0][0]) return series.get(id).sent;
  for (let n = 1; n < points.length; n++) {
    const [x0, m0] = points[n - 1], [x1, m1] = points[n];
    if (lgT < x1) return m0 === m1 ? m0 : m0 * Math.pow(m1 / m0, (lgT - x0) / (x1 - x0));
  }
  return series.get(id).lost;
}

function ticks(low, high, most, logarithmic) {
  const found = [];
  if (logarithmic && high / low >= 10) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const share = Math.floor(most / Math.max(1, last - first));
    const within = share <= 1 ? [1] : share === 2 ? [1, 3] : [1, 2, 5];
    const every = Math.max(1, Math.ceil((last - first) / most));
    for (let p = first; p <= last; p += every) for (const n of within) found.push(n * Math.pow(10, p));
  } else {
    const rough = (high - low) / most, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
    for (let n = Math.ceil(low / step); n * step <= high; n++) found.push(n * step);
  }
  return found.filter(t => t >= low && t <= high && (t >= 1 || t === 0));
}

// Moves labels apart that would touch.
function makeRoom(wanted, gap, low, high) {
  gap = Math.min(gap, (high - low) / Math.max(1, wanted.length - 1));
  const order = wanted.map((_, n) => n).sort((a, b) => wanted[a] - wanted[b]), placed = [];
  let least = low;
  for (const n of order) { placed[n] = Math.max(wanted[n], least); least = placed[n] + gap; }
  let most = high;
  for (const n of order.reverse()) { placed[n] = Math.min(placed[n], most); most = placed[n] - gap; }
  return placed;
}

const TOP = 34, BOTTOM = 62, LEFT = 56, RIGHT = 16, LEAST = 0.7;
const space = one('svg') ? one('svg').namespaceURI : '';
function element(parent, name, attributes, text) {
  const made = document.createElementNS(space, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// Redraws a profile figure for the selected series.
function draw(figure) {
  const { shown, linear } = figure.state;
  for (const svg of all('svg.plot, .wide > svg, .narrow > svg', figure)) {
    const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
    for (const child of [...svg.children]) if (!['title', 'desc'].includes(child.localName)) child.remove();
    const right = width - RIGHT, bottom = height - BOTTOM;
    if (!shown.length) { element(svg, 'text', { class: 'tick middle', x: width / 2, y: height / 2 }, 'no series chosen'); svg.scale = null; continue; }
    const rows = shown.map(({ id, kind }) => ({ ...series.get(id), kind, least: Math.pow(10, corners(id)[0][0]) }));
    const floors = rows.map(row => row.floor).filter(floor => floor !== null), floor = floors.length ? Math.min(...floors) : null;
    let low = Math.max(1, Math.min(...rows.map(row => row.least)));
    let high = Math.max(...rows.map(row => row.max), 1);
    const near = [...rows.flatMap(row => row.papers.map(point => point[0])), ...floors].filter(ns => ns >= low / 3 && ns <= high * 3);
    low = Math.max(1, Math.min(low, ...near));
    high = Math.max(high, ...near);
    if (linear) { low = 0; high *= 1.03; }
    else { const margin = Math.max(Math.pow(high / low, 0.04), 1.02); low /= margin; high *= margin; }
    const most = Math.max(...rows.map(row => row.sent)) * 1.3;
    const x = t => linear ? LEFT + (Math.min(Math.max(t, low), high) - low) / (high - low) * (right - LEFT)
      : LEFT + Math.log(Math.min(Math.max(t, low), high) / low) / Math.log(high / low) * (right - LEFT);
    const y = m => bottom - Math.log(Math.max(m, LEAST) / LEAST) / Math.log(most / LEAST) * (bottom - TOP);
    const line = (kind, x1, y1, x2, y2) => element(svg, 'line', { class: kind, x1, y1, x2, y2 });
    const text = (kind, x, y, words) => element(svg, 'text', { class: kind, x, y }, words);
    text('head', 0, 10, 'frames that took longer than t');
    for (const tick of ticks(1, most, 7, true)) { line('grid', LEFT, y(tick), right, y(tick)); text('tick end', LEFT - 6, y(tick) + 4, grouped(tick)); }
    for (const tick of ticks(low, high, Math.max(2, Math.floor((right - LEFT) / 75)), !linear)) {
      line('grid', x(tick), TOP, x(tick), bottom + 32); text('tick middle', x(tick), bottom + 48, round(tick));
    }
    line('axis', LEFT, bottom, right, bottom);
    text('tick end', LEFT - 6, bottom + 26, 'worst');
    if (floor !== null && floor < low) text('tick', LEFT, TOP - 5, '← floor ' + span(floor));
    else if (floor !== null) { line('floor', x(floor), TOP, x(floor), bottom); text('tick middle', Math.max(x(floor), 16), TOP - 5, 'floor'); }
    for (const row of [...rows].reverse()) {
      line('lead ' + row.kind, LEFT, y(row.sent), x(row.least), y(row.sent));
      const d = corners(row.id).map(([lg, m], n) => (n ? 'L' : 'M') + x(Math.pow(10, lg)).toFixed(1) + ' ' + y(m).toFixed(1)).join('');
      const path = element(svg, 'path', { class: 'line ' + row.kind, d });
      element(path, 'title', {}, `${row.label} (${row.condition}): worst ${span(row.max)}`);
      if (row.lost) { line('plateau ' + row.kind, x(row.max), y(row.lost), right, y(row.lost)); text('tick end', right, y(row.lost) - 4, grouped(row.lost) + ' lost'); }
    }
    for (const row of rows) for (const [ns, m] of row.papers) {
      if (ns < low || ns > high) continue;
      const [a, b] = [x(ns), y(m)];
      const mark = element(svg, 'path', { class: 'paper-point ' + row.kind, d: `M${a - 5} ${b}L${a} ${b - 5}L${a + 5} ${b}L${a} ${b + 5}L${a - 5} ${b}` });
      element(mark, 'title', {}, row.label + ' in the paper');
    }
    const ends = rows.map(row => x(row.max)), places = makeRoom(ends, 17, LEFT + 8, right - 8);
    rows.forEach((row, n) => {
      line('leader ' + row.kind, ends[n], bottom, places[n], bottom + 15);
      element(svg, 'circle', { class: 'badge ' + row.kind, cx: places[n], cy: bottom + 22, r: 7.5 });
      text('badge-text', places[n], bottom + 25.3, String(shown[n].number));
    });
    const worst = rows.reduce((a, b) => b.max > a.max ? b : a);
    element(svg, 'circle', { class: 'worst ' + worst.kind, cx: x(worst.max), cy: y(Math.max(worst.lost, 1)), r: 4 });
    text('value end', right, TOP - 8, `worst ${worst.label} ${span(worst.max)}`);
    svg.scale = { x, y, rows, bottom, right, invert: at => linear ? low + (at - LEFT) / (right - LEFT) * (high - low) : low * Math.pow(high / low, (at - LEFT) / (right - LEFT)) };
  }
}

// The values under the pointer: the nearest line, its time and its frames.
function read(figure, svg, event) {
  if (!svg.scale) return;
  all('.cursor', svg).forEach(mark => mark.remove());
  const box = svg.getBoundingClientRect(), zoom = svg.viewBox.baseVal.width / box.width;
  const at = (event.clientX - box.left) * zoom, level = (event.clientY - box.top) * zoom;
  const { x, y, rows, bottom, right, invert } = svg.scale;
  if (at < LEFT || at > right || level < TOP - 10 || level > bottom + 10) { figure.readout.textContent = ''; return; }
  const t = Math.max(1, invert(at)), lg = Math.log10(t);
  const near = rows.map(row => ({ row, m: slower(row.id, lg) })).reduce((a, b) => Math.abs(y(b.m) - level) < Math.abs(y(a.m) - level) ? b : a);
  element(svg, 'line', { class: 'cursor', x1: at, x2: at, y1: TOP, y2: bottom });
  element(svg, 'circle', { class: 'cursor ' + near.row.kind, cx: at, cy: y(near.m), r: 4 });
  const frames = near.m < 0.85 ? 'no frame' : `${grouped(near.m)} of ${grouped(near.row.sent)} frames`;
  figure.readout.textContent = `${near.row.label}: ${frames} took longer than ${span(t)}`;
}

function tool(bar, name, action) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = name;
  button.addEventListener('click', action);
  bar.append(button);
  return button;
}

function toggle(item, checked, changed) {
  item.tabIndex = 0;
  item.setAttribute('role', 'checkbox');
  item.setAttribute('aria-checked', checked);
  const flip = () => { item.setAttribute('aria-checked', item.getAttribute('aria-checked') !== 'true'); changed(); };
  item.addEventListener('click', flip);
  item.addEventListener('keydown', event => { if (event.key === ' ' || event.key === 'Enter') { event.preventDefault(); flip(); } });
}

function interactive(figure) {
  const bar = one('.tools', figure);
  figure.state = { shown: [], linear: false };
  figure.readout = document.createElement('output');
  const axis = tool(bar, 'linear axis', () => {
    figure.state.linear = !figure.state.linear;
    axis.setAttribute('aria-pressed', figure.state.linear);
    choose();
  });
  axis.setAttribute('aria-pressed', false);
  bar.prepend(figure.readout);
  const choose = () => {
    const chosen = all('.legend li', figure).filter(item => item.getAttribute('aria-checked') === 'true');
    figure.state.shown = chosen.map(item => ({ id: +item.dataset.s, kind: item.className, number: one('.disc', item).textContent }));
    draw(figure);
  };
  figure.choose = choose;
  all('.legend li', figure).forEach(item => toggle(item, true, choose));
  let ready = false;
  figure.addEventListener('pointermove', event => {
    const svg = event.target.closest && event.target.closest('.wide > svg, .narrow > svg');
    if (!svg) return;
    if (!ready) { ready = true; choose(); }
    read(figure, svg, event);
  });
  figure.addEventListener('pointerleave', () => { figure.readout.textContent = ''; all('.cursor', figure).forEach(mark => mark.remove()); });
}

// The matrix chooses what the explorer shows.
function explorer(figure) {
  const list = one('.legend', figure), chosen = () => all('li', list).map(item => +item.dataset.s);
  const cells = new Map(all('.heat a').map(cell => [+cell.dataset.s, cell]));
  const refresh = () => {
    all('li', list).forEach((item, n) => {
      const kind = `hue-${n % 7} dash-${Math.floor(n / 7) % 4}`;
      item.className = kind;
      one('.disc', item).textContent = n + 1;
    });
    const first = one('.first', figure);
    if (first) first.remove();
    cells.forEach((cell, id) => cell.classList.toggle('chosen', chosen().includes(id)));
    figure.choose();
  };
  const add = id => {
    const row = series.get(id);
    if (!row) return;
    const there = all('li', list).find(item => +item.dataset.s === id);
    if (there) { there.remove(); return refresh(); }
    const item = document.createElement('li');
    item.dataset.s = id;
    const disc = document.createElement('span'), name = document.createElement('code'), about = document.createElement('span');
    disc.className = 'disc';
    name.textContent = row.label;
    about.className = 'faint';
    about.textContent = `${row.condition}; worst ${span(row.max)}`;
    const sample = document.createElementNS(space, 'svg');
    sample.setAttribute('class', 'mini');
    element(sample, 'use', { href: '#line' });
    item.append(disc, sample, name, about);
    list.append(item);
    toggle(item, true, figure.choose);
    refresh();
  };
  cells.forEach((cell, id) => cell.addEventListener('click', event => {
    if (!series.has(id)) return;
    event.preventDefault();
    if (!figure.touched) { figure.touched = true; list.replaceChildren(); }
    add(id);
  }));
  const bar = one('.tools', figure);
  tool(bar, 'none', () => { figure.touched = true; list.replaceChildren(); refresh(); });
  const search = document.createElement('input'), found = document.createElement('ul');
  search.type = 'search';
  search.placeholder = 'add a series: read+write flood';
  search.setAttribute('aria-label', 'add a series');
  found.className = 'found';
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? [...series.values()].filter(row => words.every(word => `${row.label} ${row.condition}`.toLowerCase().includes(word))) : [];
    found.replaceChildren(...hits.slice(0, 12).map(row => {
      const item = document.createElement('li');
      tool(item, `${row.label}, ${row.condition}`, () => { figure.touched = true; add(row.id); });
      return item;
    }));
  });
  list.before(search, found);
}

// Colours the matrix by another figure: each has a digit of the cell's levels.
function metrics(map) {
  const bar = one('.tools', map);
  const names = ['median', 'p99', 'worst', 'lost'];
  const buttons = names.map((name, n) => tool(bar, name, () => {
    all('td[data-q]', map).forEach(cell => { cell.className = 'q' + cell.dataset.q[n] + (cell.classList.contains('lossy') ? ' lossy' : ''); });
    map.classList.toggle('other', n > 0);
    const metric = one('.metric', map);
    metric.textContent = name === 'lost' ? 'lost frames' : `${name} ${metric.dataset.quantity}`;
    buttons.forEach((button, m) => button.setAttribute('aria-pressed', m === n));
  }));
  buttons.forEach((button, n) => button.setAttribute('aria-pressed', n === 0));
}

// Downloads.
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const STYLE = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'vector-effect', 'opacity', 'fill-opacity', 'font-size', 'font-family', 'font-weight', 'text-anchor', 'paint-order'];
function standalone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...all('*', svg)], to = [copy, ...all('*', copy)];
  from.forEach((original, n) => {
    const style = getComputedStyle(original);
    to[n].setAttribute('style', STYLE.map(key => `${key}:${style.getPropertyValue(key)}`).join(';'));
  });
  for (const use of all('use', copy)) {
    const path = one(use.getAttribute('href')).cloneNode();
    path.removeAttribute('id');
    for (const key of ['style', 'class']) path.setAttribute(key, use.getAttribute(key));
    path.style.vectorEffect = 'non-scaling-stroke';
    use.replaceWith(path);
  }
  const [x, y, width, height] = svg.getAttribute('viewBox').split(' ');
  const ground = document.createElementNS(space, 'rect');
  for (const [key, value] of [['x', x], ['y', y], ['width', width], ['height', height], ['fill', getComputedStyle(document.body).backgroundColor]]) ground.setAttribute(key, value);
  copy.prepend(ground);
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  return new XMLSerializer().serializeToString(copy);
}
async function unpack(id) {
  const bytes = Uint8Array.from(atob(one('#' + id).textContent), character => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
}

all('figure.profile').forEach(interactive);
all('figure').forEach(figure => {
  const bar = one('.tools', figure);
  if (!bar || !one('.wide > svg', figure)) return;
  const name = (one('h3', figure) || figure).textContent.trim().toLowerCase().replace(/[^a-z0-9]+/g, '-');
  tool(bar, 'SVG', () => {
    const svg = all('.wide > svg, .narrow > svg', figure).find(svg => svg.getBoundingClientRect().width > 0);
    if (svg) save(new Blob([standalone(svg)], { type: 'image/svg+xml' }), `canter-${name}.svg`);
  });
});
all('.heat').forEach(metrics);
const chooser = one('#explorer');
if (chooser) explorer(chooser);
all('button[data-json]').forEach(button => button.addEventListener('click', async () => save(await unpack(button.dataset.json), button.dataset.name)));
const closed = () => all('details:not([open])');
let opened = [];
addEventListener('beforeprint', () => { opened = closed(); if (opened.length < 60) opened.forEach(details => { details.open = true; }); });
addEventListener('afterprint', () => opened.forEach(details => { details.open = false; }));
})();
