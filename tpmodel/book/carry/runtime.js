/* What Python means and JavaScript does not: the helpers that carried functions call. */
const MOST_KEPT = 5000;
let $ids = new Map(), $memos = [], $age = 0, $last = 0;
const $id = text => $ids.get(text) ?? ($ids.set(text, `#${$last += 1}`), `#${$last}`);
/* Equal values have equal keys: what is small as it is, all else by a number, until all numbers are forgotten. */
function $key(x) {
  if (x === null || typeof x !== "object") return x;
  if (x.$age === $age) return x.$k;
  const part = one => JSON.stringify($key(one) ?? null), names = x.constructor.$fields;
  x.$age = $age;
  return x.$k = Array.isArray(x) ? $id(`(${x.map(part)})`) : !names || names.includes("numbers") ? `#${$last += 1}` :
    $id(`${x.constructor.name}(${names.map(name => part(x[name]))})`);
}
const $memo = f => {
  const found = new Map();
  $memos.push(found);
  return (...all) => {
    let key = "";
    for (const one of all) key += `${$key(one)}|`;
    if (!found.has(key)) found.set(key, f(...all));
    return found.get(key);
  };
};
/* Now and then, so that the page does not grow. */
const $forget = () => {
  if ($memos.every(found => found.size < MOST_KEPT)) return;
  $ids.clear();
  $age += 1;
  for (const found of $memos) found.clear();
};

class Dict {
  constructor(pairs = []) { this.m = new Map(); for (const pair of pairs) this.m.set($key(pair[0]), pair); }
  set(k, v) { this.m.set($key(k), [k, v]); return this; }
  has(k) { return this.m.has($key(k)); }
  get(k, or = null) { const found = this.m.get($key(k)); return found ? found[1] : or; }
  get size() { return this.m.size; }
  items() { return [...this.m.values()]; }
  keys() { return this.items().map(pair => pair[0]); }
  values() { return this.items().map(pair => pair[1]); }
  pop(k = this.keys()[0], or) { const found = this.get(k, or); this.m.delete($key(k)); return found; }
  setdefault(k, v) { if (!this.has(k)) this.set(k, v); return this.get(k); }
  add(x) { this.set(x, x); }
  update(...more) { for (const one of more) for (const [k, v] of $pairs(one)) this.set(k, v); }
  [Symbol.iterator]() { return this.keys()[Symbol.iterator](); }
}
const $none = new Dict();
class Group extends Dict { constructor(all = []) { super(); for (const x of all) this.add(x); } }  // a set
class Range {
  constructor(from, to, step) { Object.assign(this, { from, step, length: Math.max(0, Math.ceil((to - from) / step)) }); }
  at(i) { return this.from + this.step * i; }
  *[Symbol.iterator]() { for (let i = 0; i < this.length; i += 1) yield this.at(i); }
}
class ValueError extends Error {
  constructor(...said) { super(); this.__init__(...said); }
  __init__(message) { this.message = message; }
}
class AttributeError extends ValueError {}

const $pairs = x => x instanceof Group || !(x instanceof Dict) ? $seq(x).map(one => [one, one]) : x.items();
const $seq = all => Array.isArray(all) ? all : [...all], $tuple = (all = []) => $seq(all), $list = (all = []) => [...all];
const $set = all => new Group(all), $len = x => x instanceof Dict ? x.size : x.length, $items = x => x.items();
const $union = (a, b) => {
  const made = new a.constructor();
  made.m = new Map(a.m);
  for (const [key, pair] of b.m) made.m.set(key, pair);
  return made;
};
const $dict = (pairs = [], more = null) => {
  const made = pairs instanceof Dict ? pairs : new Dict(pairs);
  return more || made === pairs ? $union(made, more ?? $none) : made;
};
const $put = (x, k, v) => x instanceof Dict ? x.set(k, v) : x[k < 0 ? x.length + k : k] = v;
const $t = x => x === undefined || x === null || typeof x !== "object" ? Boolean(x) : ($len(x) ?? 1) > 0;
const $eq = (a, b) => {
  if (a === b || typeof a !== "object" || typeof b !== "object" || !a || a.constructor !== b?.constructor) return a === b;
  if (Array.isArray(a)) return a.length === b.length && a.every((x, i) => $eq(x, b[i]));
  if (!(a instanceof Dict)) return $key(a) === $key(b);
  return a.size === b.size && a.items().every(([k, v]) => b.has(k) && $eq(v, b.get(k)));
};
const $compare = (a, b) => {
  if (!Array.isArray(a)) return a < b ? -1 : a > b ? 1 : 0;
  const at = a.findIndex((x, i) => i >= b.length || $compare(x, b[i]));
  return at < 0 ? a.length - b.length : at >= b.length ? 1 : $compare(a[at], b[at]);
};
const $order = (a, sign, b) => {
  const one = a instanceof Group ? a.keys().every(x => b.has(x)) ? a.size - b.size : 1 : $compare(a, b);
  return sign === "<" ? one < 0 : sign === "<=" ? one <= 0 : sign === ">" ? one > 0 : one >= 0;
};
const $in = (x, all) => typeof all === "string" ? all.includes(x) : all instanceof Dict || all instanceof View ? all.has(x) :
  $seq(all).some(one => $eq(one, x));
const $add = (a, b) => Array.isArray(a) ? [...a, ...b] : a + b;
const $sub = (a, b) => a instanceof Dict ? $set(a.keys().filter(x => !b.has(x))) : a - b;
const $mul = (a, b) => typeof a === "string" ? a.repeat(Number(b)) : typeof b === "string" ? b.repeat(Number(a)) :
  Array.isArray(a) ? Array.from({ length: Math.max(0, b) }, () => a).flat() : a * b;
const $floordiv = (a, b) => Math.floor(a / b), $mod = (a, b) => a - Math.floor(a / b) * b;
const $at = (x, i) => {
  if (x instanceof Range) return x.at(i);
  if (!(x instanceof Dict)) return x[i < 0 ? x.length + i : +i] ?? null;
  if (!x.has(i)) throw new ValueError(i);
  return x.get(i);
};
const $slice = (x, from, to, step) => {
  const all = x.slice(from ?? undefined, to ?? undefined);
  return step === null ? all : (step < 0 ? all.reverse() : all).filter((_, i) => i % Math.abs(step) === 0);
};
const $range = (a, b, step = 1) => b === undefined ? new Range(0, a, 1) : new Range(a, b, step);
const $sum = (all, first = 0) => $seq(all).reduce($add, first);
const $zip = (...all) => {
  const lists = all.map($seq), found = [];
  for (let i = 0, n = Math.min(...lists.map(one => one.length)); i < n; i += 1) found.push(lists.map(one => one[i]));
  return found;
};
const $map = (f, ...all) => $zip(...all).map(each => f.$fields ? new f(...each) : f(...each));
const $filter = (f, all) => $seq(all).filter(x => $t(f ? f(x) : x)), $any = all => $seq(all).some($t);
const $all = all => $seq(all).every($t), $enumerate = (all, first = 0) => $seq(all).map((x, i) => [i + first, x]);
const $reversed = all => $list(all).reverse(), $nothing = () => { throw new ValueError("nothing is left"); };
const $next = (all, or = $nothing) => { const [x = or] = all; return x === $nothing ? $nothing() : x; };
const $best = sign => ({ key = x => x, default: or = $nothing }, ...all) => {
  const found = all.length === 1 ? $seq(all[0]) : all;
  if (!found.length) return or === $nothing ? $nothing() : or;
  return found.map(x => [x, key(x)]).reduce((best, one) => sign * $compare(one[1], best[1]) > 0 ? one : best)[0];
};
const $max = $best(1), $min = $best(-1), $max2 = (a, b) => $compare(b, a) > 0 ? b : a, $min2 = (a, b) => $compare(b, a) < 0 ? b : a;
const $sorted = ({ key = x => x, reverse = false }, all) => $seq(all).map(x => [key(x), x]).sort(
  (a, b) => (reverse ? -1 : 1) * $compare(a[0], b[0])).map(pair => pair[1]);
const $isinstance = (x, kind) => Array.isArray(kind) ? kind.some(one => $isinstance(x, one)) :
  kind === $str ? typeof x === "string" : kind === $t ? typeof x === "boolean" : kind === $dict ? x instanceof Dict :
    [$list, $tuple].includes(kind) ? Array.isArray(x) : x instanceof kind;
const $getattr = (x, name, or = $nothing) => {
  const found = x instanceof View ? x.$get(name) : x[name];
  return found !== undefined ? found : or === $nothing ? $nothing() : or;
};
const $bound = (x, name) => typeof x[name] === "function" ? x[name].bind(x) : x[name];
const $named = (f, names, more, words, table) => {
  const rest = $dict(table);
  const all = [...words, ...names.slice(words.length).map(name => rest.has(name) ? rest.pop(name) : undefined)];
  return f(...all, ...more ? [rest] : []);
};
const $object = table => Object.fromEntries(table.items());
const $replace = (x, more) => new x.constructor(...x.constructor.$fields.map(name => name in more ? more[name] : x[name]));
const $once = (x, name) => (x.$held ??= {})[name] ??= x["$once_" + name]();  // a cached property
/* Every name of the vocabulary as a property of a class. */
const $getters = (kind, get) => $names.filter(name => !(name in kind.prototype)).forEach(
  name => Object.defineProperty(kind.prototype, name, { get() { return get.call(this, name); } }));
const $asdict = x => $dict(x.constructor.$fields.map(name => [name, x[name]]));
const $plain = x => x instanceof Dict ? $object($dict(x.items().map(([k, v]) => [k, $plain(v)]))) :
  Array.isArray(x) ? x.map($plain) : x;

const $str = x => x === null ? "None" : x === true ? "True" : x === false ? "False" : x instanceof Error ? x.message : String(x);
const $repr = x => typeof x === "string" ? `'${x}'` : Array.isArray(x) ? `(${x.map($repr).join(", ")})` : $str(x);
const $int = x => Math.trunc(Number(x));
/* Of two numbers as near Python takes the even one, JavaScript the larger. */
const $even = (x, digits) => {
  const size = Math.abs(x) * 10 ** digits, down = Math.floor(size);
  const tie = size - down === 0.5 && Number.isInteger(x * 2 ** (digits + 1)) && down % 2 === 0;
  return tie ? Math.sign(x) * down / 10 ** digits : x;
};
const $minus = x => Object.is(x, -0) ? "-" : "", $text = (x, digits) => $minus(x) + x.toFixed(digits);
const $fixed = (x, digits) => $text($even(x, digits), digits), $round = (x, digits = 0) => Number($fixed(x, digits));
const $general = (x, digits) => {
  const rounded = $even(x, digits - 1 - Number(x.toExponential(digits - 1).split("e")[1]));
  const [head, power] = rounded.toExponential(digits - 1).split("e");
  const bare = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  if (power >= -4 && power < digits) return bare($text(rounded, digits - 1 - power));
  return `${bare(head)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
};
const $fmt = (x, spec) => {
  if (typeof x === "string") return x;
  const [, comma, digits = "6", kind] = /^(,)?(?:\.(\d+))?([fg])?$/.exec(spec);
  const text = kind === "f" ? $fixed(x, Number(digits)) : kind === "g" ? $general(x, Number(digits)) : String(x);
  return comma ? text.replace(/^-?\d+/, whole => whole.replace(/\B(?=(\d{3})+$)/g, ",")) : text;
};
const $m_join = (by, all) => $seq(all).join(by), $m_get = (x, k, or = null) => x.get(k, or), $m_pop = (x, ...more) => x.pop(...more);
const $m_split = (text, by) => by === undefined ? text.trim().split(/\s+/).filter(Boolean) : text.split(by);
const $m_format = (text, ...said) => text.replace(/\{\}/g, () => $str(said.shift()));
const $met = found => found && Object.assign([...found].map(x => x ?? null), { groups: () => [...found].slice(1) });
const $match = (pattern, text) => $met(new RegExp(`^(?:${pattern})`).exec(text)), $fullmatch = (pattern, text) => $match(`(?:${pattern})$`, text);
const $pattern = pattern => ({ fullmatch: text => $fullmatch(pattern, text), search: text => $met(new RegExp(pattern).exec(text)) });

/* Values by name, as tpmodel.formula.view.View: what it does not hold a recipe or the formula of the name gives. */
const $formula = name => $forms[name] ?? null, $said = (f, __doc__) => Object.assign(f, { __doc__ });
class View {
  constructor(values, recipes, given, sources) {
    Object.assign(this, { _held: values, _recipes: recipes ?? $none, _sources: sources ?? $none, $found: new Map() });
  }
  $get(name) {
    const held = this._held.m.get(name) ?? this.$found.get(name);
    if (held) return held[1];
    const recipe = this._recipes.get(name);
    if (!recipe && !$forms[name]) throw new AttributeError(`no ${name}`);
    const found = !recipe ? this.$call(F[name]) : typeof recipe === "string" ? this.$get(recipe) : recipe(this);
    this.$found.set(name, [name, found]);
    return found;
  }
  has(name) { return this._held.has(name) || this._recipes.has(name); }
  $call(form, more = $none) {
    return form(...$forms[form.name].parameters.map(name => more.has(name) ? more.get(name) : this.$get(name)));
  }
  /* What a recipe reads itself, in order: [view, name], also of views that it extends. */
  _read_by(recipe) {
    const read = [], add = (view, name) => read.some(one => one[0] === view && one[1] === name) || read.push([view, name]);
    const spy = view => new Proxy(view, { get(_, name) {
      if (name === "extended" || name === "given") return more => spy(view[name](more));
      if (name !== "$call") { if (view.has(name) || $forms[name]) add(view, name); return view[name]; }
      return (form, more = $none) => {
        for (const one of $forms[form.name].parameters) if (!more.has(one)) add(view, one);
        return view.$call(form, more);
      };
    } });
    recipe(spy(this));
    return read;
  }
  $with(more, recipes) {
    const own = [this._held, this._recipes].map(table => $union(table, $none)), all = [more, recipes];
    own.forEach((table, i) => {
      for (const name in all[i]) table.set(name, all[i][name]);
      for (const name in all[1 - i]) table.m.delete(name);
    });
    return new View(...own, null, this._sources);
  }
  extended(more) { return this.$with(more, {}); }
  given(more) { return this.$with(more, {}); }
  derived(recipes) { return this.$with({}, recipes); }
  sourced(sources) {
    return new View(this._held, this._recipes, null, $union(this._sources, $dict(Object.entries(sources))));
  }
  names() { return this._held.keys(); }
}
