// The shop's page, and its second tab. Every request is really sent, by the browser client where a page would use it;
// what the diagram shows is what the wire and the service's live view have told.
import { startShop } from './page.js';
import { startTab } from './tab.js';

if (document.querySelector('[data-page=tab]')) startTab();
else startShop();
