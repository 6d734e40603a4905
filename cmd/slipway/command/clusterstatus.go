package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/node/hostreport"
	"github.com/slipway-platform/slipway/platform/controlplane"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// maxClockDifference is the maximum difference between the clocks of a healthy host and this
// machine.
const maxClockDifference = time.Minute

// clusterState is the output of `slipway status --cluster -o json`.
type clusterState struct {
	Hosts []hostState `json:"hosts"`
	masters.View
}

// hostState is the state of one host in the cluster.
type hostState struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Ready   bool   `json:"ready"`
	Address string `json:"address"`
	Version string `json:"version"`
	// CertificateEnd is the expiry time of the API server's serving certificate on a master, or of
	// the kubelet's serving certificate on a node.
	CertificateEnd *time.Time `json:"certificateEnd,omitempty"`
	// ClockDifference is the difference between the host's clock and this machine's clock.
	ClockDifference string `json:"clockDifference,omitempty"`
	Problem         string `json:"problem,omitempty"`
	// Slipway is the host's version of Slipway, and NotReady lists the host's components that are
	// neither ready nor on standby. Both values come from the host's last report.
	Slipway  string                 `json:"slipway,omitempty"`
	NotReady []hostreport.Component `json:"notReady,omitempty"`
}

// printCluster prints the state of all hosts. It returns errNotReady if any of them has a problem.
func printCluster(cmd *cobra.Command, h *host.Host, output string) error {
	if h.Joined() {
		return errors.New("this host is only a node; run `slipway status --cluster` on a master")
	}
	config, err := h.AdminClient()
	if err != nil {
		return fmt.Errorf("%w; start the cluster with: slipway up", err)
	}
	state, err := readCluster(cmd.Context(), h, config)
	if err != nil {
		return err
	}
	err = printAs(cmd.OutOrStdout(), output, state, state.write)
	if err == nil && !state.healthy() {
		return errNotReady
	}
	return err
}

func readCluster(ctx context.Context, h *host.Host, config *rest.Config) (*clusterState, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	nodes, err := client.CoreV1().Nodes().List(limited, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	view, err := masters.Read(ctx, h.EtcdMembers(), client, controlplane.Groups())
	if err != nil {
		return nil, err
	}
	state := &clusterState{Hosts: make([]hostState, len(nodes.Items)), View: view}
	isMaster := map[string]bool{h.Node.NodeName: true}
	for _, m := range view.Members {
		isMaster[m.Name] = true
	}
	var probes sync.WaitGroup
	_, port := h.Master.APIAddress()
	for i := range nodes.Items {
		probes.Go(func() { state.Hosts[i] = probeHost(ctx, &nodes.Items[i], isMaster[nodes.Items[i].Name], port) })
	}
	probes.Wait()
	return state, nil
}

// probeHost connects to a master's API server or a node's kubelet.
func probeHost(ctx context.Context, node *corev1.Node, master bool, port int) hostState {
	state := hostState{Name: node.Name, Role: "node", Version: node.Status.NodeInfo.KubeletVersion}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && state.Address == "" {
			state.Address = address.Address
		}
	}
	path := "/healthz"
	if master {
		state.Role, path = "master", "/readyz"
	} else {
		port = int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			state.Ready, state.Problem = condition.Status == corev1.ConditionTrue, condition.Message
		}
	}
	if state.Ready {
		state.Problem = ""
	}
	state.addReport(node.Annotations[hostreport.Annotation])
	if err := state.probe(ctx, "https://"+net.JoinHostPort(state.Address, strconv.Itoa(port))+path, master); err != nil {
		state.Problem = err.Error()
	}
	return state
}

// addReport adds the contents of a host's last report. It does nothing if the host has not sent a
// report yet.
func (s *hostState) addReport(text string) {
	var report hostreport.Report
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return
	}
	s.Slipway = report.Version
	s.NotReady = slices.DeleteFunc(report.Components, func(c hostreport.Component) bool {
		return c.State == component.Ready || c.State == component.Standby
	})
}

// probe reads a server's certificate and clock. It accepts invalid certificates, because it does
// not send any secrets.
func (s *hostState) probe(ctx context.Context, url string, mustServe bool) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	// A hostile node must not redirect this host's requests to servers that trust this host.
	client := http.Client{Transport: transport, Timeout: apiTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	end := response.TLS.PeerCertificates[0].NotAfter
	s.CertificateEnd = &end
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		// Round to seconds, because the Date header has no higher resolution.
		difference := date.Sub(start).Round(time.Second)
		s.ClockDifference = difference.String()
		if difference.Abs() > maxClockDifference {
			return fmt.Errorf("its clock differs from this host's clock by %s; synchronize both clocks", difference)
		}
	}
	switch {
	case time.Now().After(end):
		return fmt.Errorf("its certificate expired on %s", end.Format(time.RFC3339))
	case mustServe && response.StatusCode != http.StatusOK:
		return fmt.Errorf("its API server is not ready: HTTP status %d", response.StatusCode)
	}
	return nil
}

// healthy reports whether no host and no etcd member has a problem.
func (c *clusterState) healthy() bool {
	return !slices.ContainsFunc(c.Hosts, func(h hostState) bool { return !h.Ready || h.Problem != "" || len(h.NotReady) > 0 }) &&
		!slices.ContainsFunc(c.Members, func(m masters.MemberView) bool { return m.Problem != "" })
}

// write writes the state as tables of hosts and etcd members.
func (c *clusterState) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HOST\tROLE\tREADY\tADDRESS\tSLIPWAY\tKUBERNETES\tCERTIFICATE ENDS\tCLOCK\t")
	for _, h := range c.Hosts {
		end := ""
		if h.CertificateEnd != nil {
			end = h.CertificateEnd.Format(time.DateOnly)
		}
		fmt.Fprintf(table, "%s\t%s\t%t\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, h.Role, h.Ready, h.Address, h.Slipway, h.Version, end, h.ClockDifference, h.Problem)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, h := range c.Hosts {
		for _, part := range h.NotReady {
			fmt.Fprintf(out, "%s: the component %s has been %s since %s. %s\n", h.Name, part.Name, part.State, part.Since.Format(time.DateTime), part.Note)
		}
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nETCD MEMBER\tROLE\tLEADER\tBEHIND\tBYTES\tVERSION\t")
	for _, m := range c.Members {
		fmt.Fprintf(table, "%s\t%s\t%t\t%d\t%d\t%s\t%s\n", m.Name, m.Role, m.Leader, m.Behind, m.Size, m.Version, m.Problem)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(c.Leaders) > 0 {
		fmt.Fprintln(table, "\nCOMPONENTS\tRUN ON")
	}
	for _, l := range c.Leaders {
		fmt.Fprintf(table, "%s\t%s\n", l.Group, l.Master)
	}
	return table.Flush()
}
