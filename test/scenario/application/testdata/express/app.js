const express = require('express');

const app = express();
const orders = [];
app.use(express.urlencoded({ extended: false }));
app.get('/', (request, response) => response.send(`<h1>Orders of Express</h1>${orders.length}`));
app.post('/orders', (request, response) => {
  orders.push(request.body.title);
  response.status(201).json(orders);
});
app.listen(8080);
