// Tables with sort buttons, and the columns of each of them. On a narrow screen a row becomes a card
// (style.css); the roles keep it a table for screen readers.
import {KeyedList, age, count, countOf, element, gpus, gpusOrUnlimited, setAttribute, setText, since, usd} from './dom.js';

const collator = new Intl.Collator('en', {numeric: true});
const compare = (a, b) => (typeof a === 'number' ? a - b : collator.compare(a, b));

// Buttons that choose a key and a direction; `changed` is called after each choice.
export class SortButtons {
  constructor(keys, changed) {
    this.keys = keys;  // [{id, title, value(item), descending}]
    this.chosen = null;
    this.descending = false;
    this.buttons = keys.map((key) => {
      const button = element('button', {type: 'button', class: 'sort', 'data-sort': key.id}, key.title);
      button.addEventListener('click', () => {
        const again = this.chosen === key;
        this.descending = again ? !this.descending : Boolean(key.descending);
        this.chosen = key;
        changed();
      });
      return button;
    });
  }

  direction(key) {
    return this.chosen !== key ? 'none' : this.descending ? 'descending' : 'ascending';
  }

  sorted(items) {
    if (!this.chosen) return items;
    const sign = this.descending ? -1 : 1;
    const {value} = this.chosen;
    return items.map((item, index) => [value(item), index, item])
      .sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]).map((row) => row[2]);
  }
}

const kRowsFirst = 100;  // drawn before the user asks for all

export class Table {
  // columns: [{id, title, value(item), fill(cell, item), numeric, wide, full, descending}]; without a
  // value it cannot be sorted by; `full`: of a card it has a line.
  constructor(parent, label, columns, keyOf, empty) {
    this.columns = columns;
    this.keyOf = keyOf;
    this.items = [];
    this.sorts = new SortButtons(columns.filter((column) => column.value), () => this.draw());
    this.heads = columns.map((column) => {
      const head = element('th', {scope: 'col', role: 'columnheader', class: column.numeric ? 'numeric' : ''});
      const place = this.sorts.keys.indexOf(column);
      head.append(place < 0 ? column.title : this.sorts.buttons[place]);
      return head;
    });
    this.body = element('tbody', {role: 'rowgroup'});
    this.table = element('table', {role: 'table', 'aria-label': label},
      element('thead', {role: 'rowgroup'}, element('tr', {role: 'row'}, ...this.heads)), this.body);
    this.note = element('p', {class: 'note'});
    this.all = element('button', {type: 'button', class: 'all', hidden: ''});
    this.all.addEventListener('click', () => {
      this.most = Infinity;
      this.draw();
    });
    this.most = kRowsFirst;
    this.empty = empty;
    parent.append(this.table, this.all, this.note);
    this.rows = new KeyedList(this.body, () => this.makeRow(), (row, item) => this.fillRow(row, item));
  }

  makeRow() {
    return element('tr', {role: 'row'}, ...this.columns.map((column) => element('td', {
      role: 'cell', 'data-label': column.title, class: ['numeric', 'wide', 'full'].filter((kind) => column[kind]).join(' '),
    })));
  }

  fillRow(row, item) {
    this.columns.forEach((column, index) => column.fill(row.cells[index], item));
  }

  show(items, more) {
    this.items = items;
    this.more = more;
    this.draw();
  }

  draw() {
    this.columns.forEach((column, index) => {
      if (column.value) setAttribute(this.heads[index], 'aria-sort', this.sorts.direction(column));
    });
    this.rows.show(this.sorts.sorted(this.items).slice(0, this.most), this.keyOf);
    this.all.hidden = this.items.length <= this.most;
    setText(this.all, `Show all ${count(this.items.length)}`);
    this.table.hidden = this.items.length === 0;
    const note = this.items.length === 0 ? this.empty : this.more ? `… and ${count(this.more)} more, which are not shown.` : '';
    setText(this.note, note);
    this.note.hidden = note === '';
  }
}

const text = (of) => (cell, item) => setText(cell, of(item));

// The element of a cell that shows a time.
function fillSince(cell, at) {
  if (at === undefined) return setText(cell, '');
  const shown = since(at);
  shown.textContent = age(Date.now() - at);
  cell.replaceChildren(shown);
}

const nameAnd = (name, more) => (more ? [element('span', {class: 'name'}, name), element('span', {class: 'detail'}, more)] : [element('span', {class: 'name'}, name)]);

// ---- queues

// The whole width of a bar: the limit, or the most that the queue may or wants to have.
function barWidth(queue) {
  const finite = [queue.quota, queue.limit, queue.fairShare].filter((amount) => amount !== null);
  return Math.max(1, queue.used, queue.requested, ...finite);
}

function fillBar(cell, queue) {
  let bar = cell.firstChild;
  if (!bar) {
    bar = element('div', {class: 'bar', 'aria-hidden': 'true'}, ...['wanted', 'used', 'quota', 'fair', 'limit'].map((part) => element('i', {class: part})));
    cell.append(bar);
  }
  const width = barWidth(queue);
  const percent = (amount) => `${Math.min(100, (100 * amount) / width)}%`;
  const [wanted, used, ...marks] = bar.children;
  wanted.style.width = percent(queue.requested);
  used.style.width = percent(queue.used);
  [queue.quota, queue.fairShare, queue.limit].forEach((amount, index) => {
    marks[index].hidden = amount === null;
    if (amount !== null) marks[index].style.left = percent(amount);
  });
}

export function queueTable(parent, sparkline) {
  return new Table(parent, 'Queues', [
    {title: 'Queue', fill(cell, queue) {
      cell.style.setProperty('--depth', queue.depth);
      cell.className = 'tree';
      cell.replaceChildren(...nameAnd(queue.name, queue.problem));
    }},
    {title: 'GPUs', numeric: true, fill: text((queue) => gpus(queue.used))},
    {title: 'Use', wide: true, fill: fillBar},
    {title: 'Last 24 hours', fill(cell, queue) { sparkline(cell, queue.name); }},
    {title: 'Quota', numeric: true, fill: text((queue) => gpusOrUnlimited(queue.quota))},
    {title: 'Limit', numeric: true, fill: text((queue) => gpusOrUnlimited(queue.limit))},
    {title: 'Fair share', numeric: true, fill: text((queue) => gpusOrUnlimited(queue.fairShare))},
    {title: 'Waiting', numeric: true, fill: text((queue) => count(queue.waiting))},
    {title: 'Pods', numeric: true, fill: text((queue) => count(queue.pods))},
    {title: '$ per hour', numeric: true, fill: text((queue) => usd(queue.price))},
  ], (queue) => queue.name, 'There are no queues.');
}

// ---- waiting workloads

// In place, so that an opened one stays open and keeps the focus.
function fillWhy(cell, item) {
  if (!cell.firstChild) cell.append(element('details', {}, element('summary'), element('p')), element('ul', {class: 'helps'}));
  const [details, helps] = cell.children;
  setText(details.children[0], item.sentence || item.code);
  setText(details.children[1], item.message || '');
  helps.replaceChildren(...(item.helps || []).map((help) => element('li', {}, help)));
}

export function waitingTable(parent) {
  return new Table(parent, 'Waiting workloads', [
    {id: 'workload', title: 'Workload', value: (item) => item.workload, fill(cell, item) {
      cell.replaceChildren(...nameAnd(item.workload, `${item.group ? 'gang, ' : ''}${countOf(item.pods, 'pod')} waiting`));
    }},
    {id: 'place', title: 'Place', numeric: true, value: (item) => item.place, fill: text((item) => count(item.place))},
    {id: 'queue', title: 'Queue', value: (item) => item.queue || '', fill(cell, item) {
      cell.replaceChildren(...nameAnd(item.queue || '', item.position ? `position ${count(item.position)}` : ''));
    }},
    {id: 'code', title: 'Verdict', full: true, value: (item) => item.code, fill(cell, item) {
      cell.replaceChildren(element('span', {class: `code ${item.category}`}, item.code));
    }},
    {title: 'Why, and what helps', wide: true, fill: fillWhy},
    {id: 'priority', title: 'Priority', numeric: true, descending: true, value: (item) => item.priority, fill: text((item) => count(item.priority))},
    {id: 'since', title: 'Since', numeric: true, value: (item) => item.since || 0, fill(cell, item) { fillSince(cell, item.since); }},
  ], (item) => `${item.group ? 'g' : 'p'}/${item.workload}`, 'Nothing waits.');
}

// ---- purchases

export function purchaseTable(parent) {
  return new Table(parent, 'Purchases', [
    {id: 'name', title: 'Node request', value: (item) => item.name, fill(cell, item) { cell.replaceChildren(...nameAnd(item.name, item.pool ? `pool ${item.pool}` : '')); }},
    {id: 'type', title: 'Type', full: true, value: (item) => item.type || '', fill(cell, item) {
      cell.replaceChildren(...nameAnd(item.type || '', [item.capacity, item.zone].filter(Boolean).join(', ')));
    }},
    {id: 'price', title: '$ per hour', numeric: true, descending: true, value: (item) => item.price ?? -1, fill: text((item) => (item.price === null ? 'unknown' : usd(item.price)))},
    {id: 'phase', title: 'State', value: (item) => item.phase, fill(cell, item) {
      cell.replaceChildren(...nameAnd(item.phase, [item.failure, item.message].filter(Boolean).join(': ')));
    }},
    {id: 'queue', title: 'For', wide: true, value: (item) => item.queue || '', fill(cell, item) {
      const names = (item.workloads || []).join(', ');
      const more = item.workloadsMore ? `${names} and ${count(item.workloadsMore)} more` : names;
      cell.replaceChildren(...nameAnd(more || '–', item.queue ? `queue ${item.queue}` : ''));
    }},
    {id: 'age', title: 'Since', numeric: true, value: (item) => item.requested || 0, fill(cell, item) { fillSince(cell, item.requested); }},
  ], (item) => item.name, 'Nothing is provisioned.');
}

// ---- nodes

const kSlotsDrawn = 16;

export const nodeSorts = [
  {id: 'name', title: 'Name', value: (node) => node.name},
  {id: 'free', title: 'Free GPUs', descending: true, value: (node) => node.gpus - node.used},
  {id: 'price', title: 'Price', descending: true, value: (node) => node.price},
  {id: 'status', title: 'State', value: (node) => node.status},
];

// What each GPU of a node is drawn as: used ones first, then promised ones.
function slotClasses(node) {
  const slots = [];
  const used = Math.floor(node.used / 1000), part = node.used % 1000 > 0 ? 1 : 0;
  const promised = Math.ceil(node.promised / 1000);
  for (let index = 0; index < Math.min(kSlotsDrawn, Math.ceil(node.gpus / 1000)); ++index) {
    if (index < used) slots.push('used');
    else if (index < used + part) slots.push('part');
    else if (index < used + part + promised) slots.push(node.coming ? 'promised booting' : 'promised');
    else slots.push(node.coming ? 'booting' : '');
  }
  return slots;
}

function slotsLabel(node) {
  if (!node.gpus) return 'no GPUs';
  const promised = node.promised ? `, ${gpus(node.promised)} promised` : '';
  return `${gpus(node.used)} of ${gpus(node.gpus)} GPUs in use${promised}${node.coming ? ', not usable yet' : ''}`;
}

function makeNode() {
  return element('li', {class: 'node'}, element('span', {class: 'name'}), element('span', {class: 'state'}),
    element('span', {class: 'slots', role: 'img'}), element('span', {class: 'detail'}));
}

function fillNode(row, node) {
  const [name, state, slots, detail] = row.children;
  setText(name, node.name);
  setText(state, node.status);
  setAttribute(state, 'class', `state ${node.coming ? 'coming' : node.status === 'Ready' ? 'ready' : 'off'}`);
  setAttribute(slots, 'aria-label', slotsLabel(node));
  const classes = slotClasses(node);
  while (slots.children.length > classes.length) slots.lastChild.remove();
  classes.forEach((kind, index) => {
    const slot = slots.children[index] || slots.appendChild(element('i'));
    setAttribute(slot, 'class', `slot ${kind}`.trim());
  });
  const more = Math.ceil(node.gpus / 1000) - classes.length;
  setText(detail, [more > 0 ? `+${more} GPUs` : '', node.gpus ? '' : 'no GPUs', node.type, node.capacity,
    node.price ? `${usd(node.price)}/h` : '', countOf(node.pods, 'pod').replace(' ', '\u00a0'), node.unneeded ? 'unneeded' : ''].filter(Boolean).join(' · '));
}

const poolKey = (row) => `${row.ours ? 'ours' : 'other'}/${row.name ?? ''}`;
const poolOf = (node) => `${node.ours ? 'ours' : 'other'}/${node.pool ?? ''}`;

export class Pools {
  constructor(parent) {
    this.lists = new WeakMap();
    this.pools = new KeyedList(parent, () => this.makePool(), (node, {pool}) => this.fillPool(node, pool));
    this.note = parent.parentNode.appendChild(element('p', {class: 'note'}));
  }

  makePool() {
    const list = element('ul', {class: 'nodes'});
    const node = element('div', {class: 'pool'}, element('h3'), element('p', {class: 'note'}), list);
    this.lists.set(node, new KeyedList(list, makeNode, fillNode));
    return node;
  }

  fillPool(node, pool) {
    const title = pool.ours ? (pool.name ? `Pool ${pool.name}` : 'Built-in pool') : pool.name ? `Pool ${pool.name}` : 'Not provisioned by Fairlead';
    setText(node.children[0], title);
    setText(node.children[1], [countOf(pool.nodes, 'node'), pool.coming ? `${count(pool.coming)} not usable yet` : '',
      pool.gpus ? `${gpus(pool.used)} of ${gpus(pool.gpus)} GPUs in use` : 'no GPUs', pool.price ? `${usd(pool.price)} per hour` : ''].filter(Boolean).join(', '));
  }

  show(pools, nodes, sorts, more) {
    const byPool = new Map(pools.map((pool) => [poolKey(pool), []]));
    for (const node of nodes) byPool.get(poolOf(node))?.push(node);
    const shown = pools.filter((pool) => byPool.get(poolKey(pool)).length > 0).map((pool) => ({pool}));
    this.pools.show(shown, ({pool}) => poolKey(pool));
    for (const {pool} of shown) {
      const {node} = this.pools.rows.get(poolKey(pool));
      this.lists.get(node).show(sorts.sorted(byPool.get(poolKey(pool))), (row) => row.name);
    }
    const note = nodes.length === 0 ? 'No nodes.' : more ? `… and ${count(more)} more nodes, which are not shown.` : '';
    setText(this.note, note);
    this.note.hidden = note === '';
  }
}
