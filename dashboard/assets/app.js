// The page: asks for the data, and shows it. Nothing of the cluster is ever parsed as HTML, and the
// token is in this module's memory alone.
import {KeyedList, age, count, countOf, element, gpus, setText, since, tellAges, usd} from './dom.js';
import {Timeline, sparkline} from './charts.js';
import {Pools, SortButtons, nodeSorts, purchaseTable, queueTable, waitingTable} from './tables.js';

const kSnapshotMs = 2000, kTimelineMs = 30000, kTimeoutMs = 15000;
const kOldMs = 15000;  // data that is older is told to be old

const at = (id) => document.getElementById(id);
let token = '';
let snapshot = null, history = new Map();
let skewMs = 0, changedAt = 0;  // of the newest data: our clock less the server's; when it came
let paused = false, askedTimelineAt = -kTimelineMs, timer = 0, asked = 0;

// ---- the parts of the page

const queues = queueTable(at('queue-table'), (cell, name) => sparkline(cell, history.get(name) || []));
const waiting = waitingTable(at('waiting-table'));
const purchases = purchaseTable(at('purchase-table'));
const sorts = new SortButtons(nodeSorts, () => drawNodes());
at('node-sort').append('Sort by ', ...sorts.buttons);
const pools = new Pools(at('pools'));
const timeline = new Timeline(at('charts'));

const tiles = new KeyedList(at('tiles'), () => element('div', {class: 'tile'}, element('dt'), element('dd'), element('dd', {class: 'detail'})),
  (node, tile) => ['title', 'value', 'detail'].forEach((part, index) => setText(node.children[index], tile[part])));
const costs = new KeyedList(at('cost-list'), () => element('li', {}, element('span', {class: 'name'}), element('span', {class: 'price'}),
  element('div', {class: 'bar', 'aria-hidden': 'true'}, element('i', {class: 'used'}))), (node, row) => {
  const [name, price, bar] = node.children;
  setText(name, row.name);
  setText(price, `${usd(row.price)}, ${row.percent} %`);
  bar.firstChild.style.width = `${row.percent}%`;
  node.className = row.idle ? 'idle' : '';
});
const events = new KeyedList(at('events'), () => element('li'), (node, event) => {
  node.replaceChildren(since(event.at), element('span', {class: `kind ${event.kind}`}, event.kind), element('span', {class: 'name'}, event.subject), element('span', {class: 'detail'}, event.text));
});

// ---- the filter

const needle = () => at('filter').value.trim().toLowerCase();
const matches = (text, ...parts) => !text || parts.some((part) => part && part.toLowerCase().includes(text));

function filtered() {
  const text = needle();
  return {
    text,
    waiting: snapshot.waiting.filter((row) => matches(text, row.workload, row.queue, row.code)),
    nodes: snapshot.nodes.filter((row) => matches(text, row.name, row.pool, row.type, row.status)),
    purchases: snapshot.purchases.filter((row) => matches(text, row.name, row.pool, row.type, row.queue, row.phase, ...(row.workloads || []))),
  };
}

// ---- drawing

function drawTiles({totals, purchasesMore}) {
  const coming = totals.coming ? `, ${count(totals.coming)} not usable yet` : '';
  tiles.show([
    {title: 'GPUs in use', value: `${gpus(totals.used)} of ${gpus(totals.gpus)}`, detail: totals.gpus ? `${Math.round((100 * totals.used) / totals.gpus)} %` : 'no GPUs'},
    {title: 'Waiting workloads', value: count(totals.waiting), detail: totals.waiting ? '' : 'nothing waits'},
    {title: 'Nodes', value: count(totals.nodes), detail: `${countOf(snapshot.purchases.length + purchasesMore, 'purchase')}${coming}`},
    {title: 'Cost per hour', value: usd(totals.bill), detail: `${usd(totals.idle)} idle`},
  ], (tile) => tile.title);
}

function drawCosts({queues: rows, totals}) {
  const paying = rows.filter((queue) => queue.leaf && queue.price > 0).map(({name, price}) => ({name, price}));
  paying.sort((a, b) => b.price - a.price);
  if (totals.idle > 0) paying.push({name: 'idle', price: totals.idle, idle: true});
  const all = Math.max(1, totals.bill);
  costs.show(paying.map((row) => ({...row, percent: Math.min(100, Math.round((100 * row.price) / all))})), (row) => `${row.idle ? 'i' : 'q'}/${row.name}`);
}

function drawNodes() {
  if (!snapshot) return;
  sorts.buttons.forEach((button, index) => {
    button.setAttribute('aria-pressed', String(sorts.chosen === nodeSorts[index]));
    button.dataset.direction = sorts.direction(nodeSorts[index]);
  });
  const {text, nodes} = filtered();
  pools.show(snapshot.pools, nodes, sorts, text ? 0 : snapshot.nodesMore);
}

function draw() {
  const shown = filtered();
  drawTiles(snapshot);
  queues.show(snapshot.queues.map((queue) => ({...queue, history: history.get(queue.name)})), snapshot.queuesMore);
  waiting.show(shown.waiting, shown.text ? 0 : snapshot.waitingMore);
  purchases.show(shown.purchases, shown.text ? 0 : snapshot.purchasesMore);
  drawNodes();
  drawCosts(snapshot);
  setText(at('filter-count'), shown.text ? `${countOf(shown.waiting.length, 'workload')}, ${countOf(shown.nodes.length, 'node')}, ${countOf(shown.purchases.length, 'purchase')}` : '');
}

function tellRole() {
  const role = at('role');
  setText(role, snapshot.leads ? 'leader' : 'standby');
  role.className = `badge ${snapshot.leads ? 'leads' : 'standby'}`;
  const standby = `This replica is a standby: it decides nothing${snapshot.leader ? `, ${snapshot.leader} leads` : ''}. It shows nodes and purchases; what queues use, what waits and the timeline are the leader's to tell.`;
  const starting = 'Not every kind of object has been listed yet.';
  tellBanner(!snapshot.leads ? standby : snapshot.synced ? '' : starting);
}

// Shows a snapshot, and measures how long that takes, layout included.
export function show(next) {
  const began = performance.now();
  if (!snapshot || snapshot.at !== next.at) {
    skewMs = Date.now() - next.at;
    changedAt = began;
  }
  snapshot = next;
  snapshot.waiting.forEach((row, index) => { row.place = index + 1; });
  at('main').hidden = false;
  tellRole();
  draw();
  tellAges(Date.now() - skewMs);
  void document.body.offsetHeight;
  const took = performance.now() - began;
  document.body.dataset.tookMs = took.toFixed(1);
  setText(at('took'), `· drawn in ${took.toFixed(0)} ms`);
  setText(at('version'), `Fairlead ${snapshot.version}`);
  tellConnection('');
}

function showTimeline(next) {
  history = new Map(next.queues.map(({name, used}) => [name, used]));
  timeline.show(next);
  events.show(next.events, (event) => `${event.at}/${event.kind}/${event.subject}`);
  draw();
  tellAges(Date.now() - skewMs);
}

// ---- what is told of the connection

function tellBanner(text) {
  setText(at('banner'), text);
  at('banner').hidden = text === '';
}

function tellConnection(problem) {
  const old = snapshot ? performance.now() - changedAt : 0;
  const stale = problem !== '' || old > kOldMs;
  const when = snapshot ? (stale ? `${age(old)} old` : paused ? 'paused' : 'live') : '';
  setText(at('connection'), [when, problem].filter(Boolean).join(': '));
  at('connection').className = stale ? 'stale' : '';
}

function askForToken(reason) {
  token = '';
  at('main').hidden = true;
  at('sign-out').hidden = true;
  tellBanner(reason);
  at('sign-in').hidden = false;
  at('token').focus();
}

// ---- asking

async function get(path) {
  const abort = new AbortController();
  const timeout = setTimeout(() => abort.abort(), kTimeoutMs);
  try {
    const answer = await fetch(path, {headers: token ? {Authorization: `Bearer ${token}`} : {}, cache: 'no-store', signal: abort.signal, redirect: 'error'});
    if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim() || `status ${answer.status}`), {status: answer.status});
    return await answer.json();
  } finally {
    clearTimeout(timeout);
  }
}

// Only the answers to the newest question count.
async function ask() {
  clearTimeout(timer);
  const mine = ++asked;
  try {
    const newest = await get('data/snapshot');
    const past = performance.now() - askedTimelineAt >= kTimelineMs ? await get('data/timeline') : null;
    if (mine !== asked) return;
    show(newest);
    if (past) {
      askedTimelineAt = performance.now();
      showTimeline(past);
    }
  } catch (failure) {
    if (mine !== asked) return;
    if (failure.status === 401 || failure.status === 403) {
      askForToken(failure.status === 401 && !token ? '' : failure.message);
      return;
    }
    tellConnection(failure.name === 'AbortError' ? 'no answer in time' : failure.message || 'no answer');
  }
  timer = setTimeout(askAgain, kSnapshotMs);
}

// A page that nobody sees asks for nothing.
function askAgain() {
  if (!paused && !document.hidden && at('sign-in').hidden) ask();
}

// ---- controls

at('pause').addEventListener('click', () => {
  paused = !paused;
  at('pause').setAttribute('aria-pressed', String(paused));
  setText(at('pause'), paused ? 'Resume' : 'Pause');
  tellConnection('');
  if (!paused) ask();
});
at('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  token = at('token').value.trim();
  at('token').value = '';
  at('sign-in').hidden = true;
  at('sign-out').hidden = false;
  askedTimelineAt = -kTimelineMs;
  tellBanner('');
  ask();
});
at('sign-out').addEventListener('click', () => {
  clearTimeout(timer);
  ++asked;
  snapshot = null;
  askForToken('');
});
at('filter').addEventListener('input', () => { if (snapshot) draw(); });
document.addEventListener('visibilitychange', () => { if (!document.hidden) askAgain(); });
setInterval(() => { if (snapshot && !document.hidden) tellAges(Date.now() - skewMs); }, 1000);

// ---- light and dark

const themes = ['system', 'light', 'dark'];
function setTheme(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(at('theme'), `Theme: ${theme}`);
}
function storedTheme() {
  try {
    const stored = localStorage.getItem('fairlead-theme');
    return themes.includes(stored) ? stored : 'system';
  } catch {
    return 'system';  // storage may be forbidden
  }
}
let theme = storedTheme();
setTheme(theme);
at('theme').addEventListener('click', () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  setTheme(theme);
  try {
    localStorage.setItem('fairlead-theme', theme);
  } catch { /* then it lasts as long as the page */ }
});

ask();
