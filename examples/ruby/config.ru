require "erb"
require "socket"

PAGE = ERB.new(<<~HTML)
  <!doctype html>
  <html lang="en">
  <meta charset="utf-8">
  <title>Hello from Ruby</title>
  <h1>Hello from Ruby</h1>
  <dl><dt>Host<dd><%= Socket.gethostname %><dt>Build<dd><%= ERB::Util.h(ENV.fetch("OPENSHIFT_BUILD_NAME", "none")) %></dl>
  </html>
HTML

# A page that shows which program serves it.
run(lambda do |request|
  case request["PATH_INFO"]
  when "/" then [200, { "Content-Type" => "text/html; charset=utf-8" }, [PAGE.result]]
  when "/healthz" then [200, { "Content-Type" => "text/plain" }, ["ok\n"]]
  else [404, { "Content-Type" => "text/plain" }, ["not found\n"]]
  end
end)
