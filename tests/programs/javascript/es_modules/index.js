import { mean, median, deviation } from './lib/statistics.js';
import table, { heading } from './lib/table.mjs';

const temperatures = {
  Oslo: [-4, -1, 3, 8],
  Rome: [12, 15, 19, 22],
  Cairo: [20, 24, 28, 31],
};

const rows = Object.entries(temperatures).map(([city, values]) => [
  city,
  mean(values).toFixed(1),
  median(values).toFixed(1),
  deviation(values).toFixed(2),
]);

console.log(heading('Temperatures'));
console.log(table(['city', 'mean', 'median', 'sd'], rows));

const { default: again } = await import('./lib/table.mjs');
console.log('same module:', again === table, import.meta.url.endsWith('/index.js'));
