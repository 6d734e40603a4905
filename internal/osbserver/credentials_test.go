package osbserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRequestsWithoutCredentialsAreRejected(t *testing.T) {
	handler := RequireCredentials("/brokers/a/")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for name, tt := range map[string]struct {
		path, authorization string
		tls                 *tls.ConnectionState
		want                int
	}{
		"without credentials": {"/brokers/a/v2/catalog", "", &tls.ConnectionState{}, http.StatusUnauthorized},
		"with a token":        {"/brokers/a/v2/catalog", "Bearer abc", &tls.ConnectionState{}, http.StatusTeapot},
		"with a certificate":  {"/brokers/a/v2/catalog", "", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, http.StatusTeapot},
		"another path":        {"/brokers/b/v2/catalog", "", &tls.ConnectionState{}, http.StatusTeapot},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, tt.path, nil)
			r.TLS = tt.tls
			if tt.authorization != "" {
				r.Header.Set("Authorization", tt.authorization)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("the code is %d, want %d", w.Code, tt.want)
			}
		})
	}
}
