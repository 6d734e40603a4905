// Package hostreport publishes a host's `slipway status` output in an annotation of its Node. API
// clients can therefore see the state of all hosts: the version, the state of the components, and
// when the certificates expire.
package hostreport

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Annotation is the Node annotation that contains the Report in JSON.
const Annotation = "slipway.openshift.io/host-report"

// interval is the interval between checks of the state.
const interval = 10 * time.Second

// Report is a host's state.
type Report struct {
	Version      string        `json:"version"`
	Components   []Component   `json:"components"`
	Certificates []Certificate `json:"certificates"`
}

// Component is a component's state. Note contains its error, or describes a feature that is not
// available.
type Component struct {
	Process string          `json:"process"`
	Name    string          `json:"name"`
	State   component.State `json:"state"`
	Since   metav1.Time     `json:"since"`
	Note    string          `json:"note,omitempty"`
}

// Certificate contains the name of a file in the certificate directory, and the expiration time of
// its first certificate.
type Certificate struct {
	Name string      `json:"name"`
	End  metav1.Time `json:"end"`
}

// Reporter is the component that publishes a host's report.
type Reporter struct {
	// Client must be allowed to patch the Node.
	Client kubernetes.Interface
	Node   string
	// Status returns the state of the host's processes.
	Status func(context.Context) (supervisor.Status, error)
	// CertificateDirs are the directories that contain certificates.
	CertificateDirs []string
}

// Name returns the component's name.
func (*Reporter) Name() string { return "host-report" }

// Run publishes each change until ctx is done. It is ready immediately, because no component
// depends on the report.
func (r *Reporter) Run(ctx context.Context, ready func()) error {
	ready()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var published, failure string
	for {
		report, err := r.report(ctx)
		if err == nil && report != published {
			err = r.publish(ctx, report)
		}
		switch {
		case err == nil:
			published, failure = report, ""
		case ctx.Err() == nil && err.Error() != failure:
			failure = err.Error()
			slog.Warn("cannot publish the host's state", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// report returns the report in JSON.
func (r *Reporter) report(ctx context.Context) (string, error) {
	status, err := r.Status(ctx)
	if err != nil {
		return "", err
	}
	certificates, err := certificatesIn(r.CertificateDirs)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(Report{Version: status.Version, Components: componentsOf(status), Certificates: certificates})
	return string(text), err
}

// componentsOf returns the components of all processes. A process without components is reported as
// one component.
func componentsOf(status supervisor.Status) (all []Component) {
	for _, process := range status.Processes {
		if len(process.Components) == 0 {
			all = append(all, Component{
				Process: process.Name, Name: process.Name, State: process.State, Since: metav1.NewTime(process.Since), Note: process.LastError,
			})
		}
		for _, c := range process.Components {
			note := c.Note
			if c.Error != "" {
				note = c.Error
			}
			all = append(all, Component{Process: process.Name, Name: c.Name, State: c.State, Since: metav1.NewTime(c.Since), Note: note})
		}
	}
	return all
}

func (r *Reporter) publish(ctx context.Context, report string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{Annotation: report}}})
	if err != nil {
		return err
	}
	if _, err := r.Client.CoreV1().Nodes().Patch(ctx, r.Node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate node %q: %w", r.Node, err)
	}
	return nil
}
