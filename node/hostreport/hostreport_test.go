package hostreport

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func TestNodeHasReportOfHost(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	status := supervisor.Status{Version: "v1", Processes: []supervisor.ProcessStatus{
		{Name: "containerd", State: component.Ready},
		{Name: "node", Components: []supervisor.ComponentStatus{
			{Name: "dns", State: component.Ready, Note: "no upstream server"}, {Name: "proxy", State: component.Failed, Error: "port in use"},
		}},
	}}
	r := &Reporter{
		Client: client, Node: "n1", CertificateDirs: []string{t.TempDir()},
		Status: func(context.Context) (supervisor.Status, error) { return status, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, func() {}) }()
	var report Report
	eventually.True(t, "report of the host", func() bool {
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		return err == nil && json.Unmarshal([]byte(node.Annotations[Annotation]), &report) == nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	got := ""
	for _, c := range report.Components {
		got += c.Process + "/" + c.Name + " " + string(c.State) + " " + c.Note + "\n"
	}
	want := "containerd/containerd ready \nnode/dns ready no upstream server\nnode/proxy failed port in use\n"
	if got != want || report.Version != "v1" {
		t.Errorf("got %q of version %q, want %q", got, report.Version, want)
	}
}

func TestReportHasCurrentCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, content := range map[string]string{
		"ca.crt": "# authority\n" + certificate, "kubelet-2026-01-02-03-04-05.pem": certificate, "notes.pem": "no certificate", "ca.key": certificate,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("kubelet-2026-01-02-03-04-05.pem", filepath.Join(dir, "kubelet-current.pem")); err != nil {
		t.Fatal(err)
	}
	certificates, err := certificatesIn([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]time.Time{}
	for _, c := range certificates {
		ends[c.Name] = c.End.Time
	}
	for _, name := range []string{"pki/ca.crt", "pki/kubelet-current.pem"} {
		if !ends[name].Equal(server.Certificate().NotAfter) {
			t.Errorf("%s ends on %s", name, ends[name])
		}
	}
	for _, name := range []string{"pki/kubelet-2026-01-02-03-04-05.pem", "pki/notes.pem", "pki/ca.key"} {
		if _, ok := ends[name]; ok {
			t.Errorf("the report contains %s", name)
		}
	}
}
