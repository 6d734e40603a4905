package console

import "net/http"

// contentPolicy lets a page load the console's own files and use its own origin, and nothing else.
// Scripts and styles in the page are refused, and so are frames.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// sandboxPolicy takes its origin from a document of the API, such as a page that a pod serves, so
// that it cannot act as the console.
const sandboxPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// harden sets the headers of every response of the console. Files replace Cache-Control.
func harden(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", contentPolicy)
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
