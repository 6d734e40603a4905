export { Runs as default } from './Pipeline';
