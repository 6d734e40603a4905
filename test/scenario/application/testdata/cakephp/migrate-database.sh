#!/bin/sh
# Runs before each deployment.
exec php -r 'require "vendor/autoload.php"; (new Articles())->migrate();'
