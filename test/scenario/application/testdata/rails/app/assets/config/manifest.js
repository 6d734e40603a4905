//= link application.css
