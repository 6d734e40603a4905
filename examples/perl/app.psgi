use strict;
use warnings;
use Sys::Hostname;

# A page that shows which program serves it.
sub {
    my $env = shift;
    return [200, ['Content-Type' => 'text/plain'], ["ok\n"]] if $env->{PATH_INFO} eq '/healthz';
    return [404, ['Content-Type' => 'text/plain'], ["not found\n"]] if $env->{PATH_INFO} ne '/';
    my $page = sprintf <<'HTML', hostname(), $ENV{OPENSHIFT_BUILD_NAME} // 'none';
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Hello from Perl</title>
<h1>Hello from Perl</h1>
<dl><dt>Host<dd>%s<dt>Build<dd>%s</dl>
</html>
HTML
    return [200, ['Content-Type' => 'text/html; charset=utf-8'], [$page]];
};
