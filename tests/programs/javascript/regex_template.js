'use strict';

// A tiny template engine and a tokenizer, both made of regular expressions.

function render(template, values) {
  return template.replace(/\{\{\s*([\w.]+)(?:\s*\|\s*(\w+))?\s*\}\}/g, (_, path, filter) => {
    const value = path.split('.').reduce((object, key) => object?.[key], values) ?? '';
    return filter === 'upper' ? String(value).toUpperCase() : String(value);
  });
}

function tokens(source) {
  const pattern = /(?<number>\d+(?:\.\d+)?)|(?<name>[a-z_]\w*)|(?<op>[-+*/()=])|\s+/giy;
  const found = [];
  for (const { groups } of source.matchAll(pattern)) {
    const [kind, text] = Object.entries(groups).find(([, value]) => value !== undefined) ?? [];
    if (kind) found.push(`${kind}:${text}`);
  }
  return found;
}

console.log(render('Dear {{ user.name | upper }}, you owe {{amount}} to {{ shop }}{{ missing }}.', {
  user: { name: 'Ada' },
  amount: 12.5,
  shop: 'the bakery',
}));
console.log(tokens('area = 3.14 * (r + 1)').join(' '));
console.log('2024-03-12'.replace(/(?<y>\d{4})-(?<m>\d\d)-(?<d>\d\d)/, '$<d>.$<m>.$<y>'));
console.log('a1b22c333'.split(/\d+/), /^\p{Lu}\p{Ll}+$/u.test('Émile'));
