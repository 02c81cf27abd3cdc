// Elements, keyed lists that change only what has changed, and numbers as people read them. All text
// of the cluster becomes a text node: nothing here, or elsewhere on the page, parses HTML.

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Children of `parent`, one per item, kept as long as an item with the same key is there. `create`
// makes an element for an item; `update` fills it, and is called only if the item has changed.
export class KeyedList {
  constructor(parent, create, update) {
    this.parent = parent;
    this.create = create;
    this.update = update;
    this.rows = new Map();  // key -> {node, signature}
  }

  show(items, keyOf) {
    const shown = new Map();
    for (const item of items) {
      let key = keyOf(item);
      while (shown.has(key)) key += '\n';  // no name has a line break
      const signature = JSON.stringify(item);
      let row = this.rows.get(key);
      if (!row) row = {node: this.create(item), signature: null};
      if (row.signature !== signature) {
        row.signature = signature;
        this.update(row.node, item);
      }
      shown.set(key, row);
    }
    for (const [key, row] of this.rows) if (!shown.has(key)) row.node.remove();
    this.rows = shown;
    let place = this.parent.firstChild;
    for (const {node} of shown.values()) {
      if (node === place) place = place.nextSibling;
      else this.parent.insertBefore(node, place);
    }
  }
}

const dollars = new Intl.NumberFormat('en-US', {style: 'currency', currency: 'USD'});
const numbers = new Intl.NumberFormat('en-US', {maximumFractionDigits: 3});

export const gpus = (milli) => numbers.format(milli / 1000);
export const gpusOrUnlimited = (milli) => (milli === null ? '–' : gpus(milli));
export const usd = (micro) => dollars.format(micro / 1e6);
export const count = (number) => numbers.format(number);
export const countOf = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;

export function age(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours}h ${minutes % 60}m` : `${hours}h`;
  return hours % 24 ? `${Math.floor(hours / 24)}d ${hours % 24}h` : `${Math.floor(hours / 24)}d`;
}

const clockFormat = new Intl.DateTimeFormat('en-GB', {weekday: 'short', hour: '2-digit', minute: '2-digit'});
export const clock = (at) => clockFormat.format(new Date(at));

// An element that shows how long ago `at` was; tellAges keeps it true.
export function since(at) {
  const node = element('time', {datetime: new Date(at).toISOString(), title: new Date(at).toISOString()});
  node.dataset.at = at;
  return node;
}

export function tellAges(now) {
  for (const node of document.querySelectorAll('time[data-at]')) setText(node, age(now - Number(node.dataset.at)));
}
