package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestLeaveAsksAnotherMasterIfOneFails(t *testing.T) {
	lost := httptest.NewServer(http.NotFoundHandler())
	lost.Close()
	methods := map[string]bool{}
	master := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods[r.Method] = true
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes/second" || r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "second"}}`)
	}))
	defer master.Close()
	if err := leave(t.Context(), "second", []*rest.Config{{Host: lost.URL}, {Host: master.URL}}, time.Minute, io.Discard); err != nil {
		t.Error(err)
	}
	if !methods[http.MethodPatch] || !methods[http.MethodGet] {
		t.Errorf("the master received %v", methods)
	}
}
