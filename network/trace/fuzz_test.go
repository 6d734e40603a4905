package trace

import "testing"

// FuzzParse verifies that parsing an arbitrary line of nft's output does not panic.
func FuzzParse(f *testing.F) {
	f.Add(`trace id 1a2d3711 ip filter input packet: iif "eth0" ip saddr 192.0.2.1`)
	f.Add("trace id 1a2d3711 ip filter input rule tcp dport 22 accept (verdict accept)")
	f.Add("trace id 1a2d3711 ip filter input policy accept")
	f.Add("trace id       ")
	f.Add("trace id 1 ip t c rule  (verdict ")
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := parse(line)
		_ = e.subject()
		_ = e.Drops()
		if !ok && e != (event{}) {
			t.Errorf("%q: %+v", line, e)
		}
	})
}
