#!/bin/sh
# The template runs it before each deployment.
exec bundle exec rake db:migrate
