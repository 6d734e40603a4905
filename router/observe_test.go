package router

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-platform/slipway/router/settings"
)

func TestStatisticsAreForThoseWhoMaySeeThem(t *testing.T) {
	for _, tt := range []struct {
		what, from     string
		user, password string // of the settings
		name, secret   string // of the request
		want           int
	}{
		{"this machine", "127.0.0.1:4711", "", "", "", "", http.StatusOK},
		{"a pod", "10.128.0.7:4711", "", "", "", "", http.StatusForbidden},
		{"a pod that guesses", "10.128.0.7:4711", "", "", "admin", "", http.StatusForbidden},
		{"who knows the password", "192.0.2.7:4711", "admin", "open", "admin", "open", http.StatusOK},
		{"who does not", "127.0.0.1:4711", "admin", "open", "admin", "sesame", http.StatusUnauthorized},
	} {
		variables := map[string]string{}
		if tt.user != "" {
			variables = map[string]string{"STATS_USERNAME": tt.user, "STATS_PASSWORD": tt.password}
		}
		s, err := settings.Read(variables)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.RemoteAddr = tt.from
		if tt.name != "" {
			request.SetBasicAuth(tt.name, tt.secret)
		}
		answer := httptest.NewRecorder()
		guarded(s, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(answer, request)
		if answer.Code != tt.want {
			t.Errorf("%s is answered with %d, want %d", tt.what, answer.Code, tt.want)
		}
	}
}
