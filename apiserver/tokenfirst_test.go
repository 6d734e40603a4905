package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// certificateFirst authenticates in the same way as upstream: by certificate, or else by the token
// `good`.
func certificateFirst(r *http.Request) (*authenticator.Response, bool, error) {
	switch {
	case len(r.TLS.PeerCertificates) > 0:
		return &authenticator.Response{User: &user.DefaultInfo{Name: "certificate"}}, true, nil
	case r.Header.Get("Authorization") == "Bearer good", r.Header.Get("Sec-WebSocket-Protocol") != "":
		return &authenticator.Response{User: &user.DefaultInfo{Name: "token"}}, true, nil
	case r.Header.Get("Authorization") != "":
		return nil, false, errors.New("invalid bearer token")
	}
	return nil, false, nil
}

func TestTokensPrecedeClientCertificates(t *testing.T) {
	for name, tt := range map[string]struct {
		header, value string
		proxied       bool
		want          string
	}{
		"certificate alone":              {want: "certificate"},
		"valid token":                    {header: "Authorization", value: "Bearer good", want: "token"},
		"invalid token":                  {header: "Authorization", value: "Bearer bogus", want: "rejected"},
		"token without a value":          {header: "Authorization", value: "Bearer ", want: "certificate"},
		"password":                       {header: "Authorization", value: "Basic abc", want: "certificate"},
		"token of a web socket":          {header: "Sec-WebSocket-Protocol", value: "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.Z29vZA", want: "token"},
		"web socket without a token":     {header: "Sec-WebSocket-Protocol", value: "v4.channel.k8s.io", want: "certificate"},
		"certificate of the front proxy": {header: "Authorization", value: "Bearer bogus", proxied: true, want: "certificate"},
		"scheme in lower case":           {header: "Authorization", value: "bearer bogus", want: "rejected"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		if tt.proxied {
			r.Header.Set(remoteUserHeader, "joe")
		}
		got := "rejected"
		if resp, ok, err := (tokenFirst{authenticator.RequestFunc(certificateFirst)}).AuthenticateRequest(r); ok && err == nil {
			got = resp.User.GetName()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if len(r.TLS.PeerCertificates) != 1 {
			t.Errorf("%s: the request no longer has its certificate", name)
		}
	}
}
