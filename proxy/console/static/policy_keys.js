// What the editor of policies proposes: the keys of the mapping in which the cursor is, or the values of its key.

const KEY = /^(\s*)(?:- )?("[^"]*"|'[^']*'|[^\s#"'{[][^:#]*?)\s*:(?:\s|$)/;

const bare = (key) => key.trim().replace(/^(["'])(.*)\1$/, "$2");

// The keys above the cursor, the outermost first, by how far in their lines begin.
function above(doc, number, indent) {
  const path = [];
  for (let at = number - 1; at > 0 && indent > 0; at--) {
    const found = doc.line(at).text.match(KEY);
    if (found && found[1].length < indent) {
      path.unshift(bare(found[2]));
      indent = found[1].length;
    }
  }
  return path;
}

// The keys of mappings in braces that are open at the end of a text, and what is written of the last entry.
function within(text) {
  const open = [];
  let quote = "", entry = "";
  for (const letter of text) {
    if (quote) quote = letter === quote ? "" : quote;
    else if (letter === '"' || letter === "'") quote = letter;
    if (quote || !"{}[],".includes(letter)) entry += letter;
    else if (letter === "{" || letter === "[") {
      open.push([letter, bare(entry.replace(/:\s*$/, ""))]);
      entry = "";
    } else {
      if (letter !== ",") open.pop();
      entry = "";
    }
  }
  return { open, entry };
}

function kindOf(kinds, path) {
  let kind = "", each = "";
  for (const key of path) {
    if (each) [kind, each] = [each, ""];
    else {
      const found = kinds[kind]?.[key];
      if (!found || !(found.kind || found.each)) return null;
      [kind, each] = [found.kind, found.each];
    }
  }
  return each ? null : kinds[kind];
}

// The values of a key; what every object has, such as "constructor", is none.
const values = (keys, key) => (Object.hasOwn(keys, key) ? keys[key].values : []);

export function proposed(kinds, state, pos) {
  const line = state.doc.lineAt(pos), before = line.text.slice(0, pos - line.from);
  const indent = before.match(/^\s*/)[0].length;
  const { open, entry } = within(before);
  if (open.some(([brace]) => brace === "[") || /(^|\s)#/.test(before)) return null;
  const keys = kindOf(kinds, [...above(state.doc, line.number, indent), ...open.map(([, key]) => key)]);
  if (!keys) return null;
  const [, key, word] = entry.match(/^\s*(\w+)\s*:\s+(\S*)$/) ?? [];
  if (key) return { from: pos - word.length, options: values(keys, key).map((value) => ({ label: value, type: "constant" })) };
  const written = entry.match(/^\s*(\w*)$/);
  if (!written) return null;
  return {
    from: pos - written[1].length,
    options: Object.entries(keys).map(([label, { about }]) => ({ label, type: "property", info: about, apply: `${label}: ` })),
  };
}

// The language with the keys in the page as what it completes.
export function withKeys(support) {
  const kinds = JSON.parse(document.querySelector("[data-keys]").dataset.keys);
  const autocomplete = (context) => {
    const found = proposed(kinds, context.state, context.pos);
    return found && (context.explicit || found.from < context.pos) ? { ...found, validFor: /^\w*$/ } : null;
  };
  return [support, support.language.data.of({ autocomplete })];
}
