package console

import "net/http"

// contentPolicy allows a page to load only the console's own files, and the extensions' scripts and
// style sheets. The extensions' URLs replace the two formatting verbs. A page can connect only to
// its own origin. The policy blocks inline scripts and styles, and frames.
const contentPolicy = "default-src 'none'; script-src 'self'%s; style-src 'self'%s; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// sandboxPolicy assigns an opaque origin to an API document, such as a page that a pod serves.
// Therefore, the document cannot act as one of the console's pages.
const sandboxPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// harden sets security headers on every console response. serveFile overrides Cache-Control.
func (s *server) harden(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", s.settings().policy())
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Dns-Prefetch-Control", "off")
		header.Set("X-Frame-Options", "DENY")
		handler.ServeHTTP(w, r)
	})
}
