package diagnostics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// probe is a connection that a pod tries to open.
type probe struct {
	id      string // problem ID if the outcome is not as expected
	from    *testPod
	to      string // description of the server
	address string // host:port
	refused bool   // true if the network must block the connection
}

// networkCheck creates two temporary projects with pods on all nodes. From each pod, it opens
// connections to other pods, services and nodes, and to a server outside the cluster.
func networkCheck(ctx context.Context, env *environment) (problems []problem, err error) {
	plugin, err := networkPlugin(ctx, env)
	if err != nil {
		return nil, err
	}
	n := &testNetwork{environment: env}
	if n.nodes, err = usableNodes(ctx, env); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.remove(ctx)) }()
	for _, podsPerNode := range []int{2, 1} {
		if err := n.createProject(ctx, podsPerNode); err != nil {
			return nil, err
		}
	}
	problems, err = n.awaitPods(ctx)
	if err != nil {
		return nil, err
	}
	wrong, err := n.try(ctx, slices.Concat(n.inside(), n.outside(), n.across(plugin == networkplugin.Multitenant)))
	if err != nil {
		return nil, err
	}
	enforced, err := n.enforcesPolicies(ctx, plugin)
	if err != nil {
		return nil, err
	}
	if enforced {
		open, err := n.tryPolicy(ctx)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, open...)
	}
	return append(problems, summarize(wrong)...), nil
}

// networkPlugin returns the name of the cluster's network plugin.
func networkPlugin(ctx context.Context, env *environment) (string, error) {
	network, err := objects.Get[networkv1.ClusterNetwork](ctx, env.dynamic, networkv1.GroupVersion.WithResource("clusternetworks"), "", networkv1.ClusterNetworkDefault)
	if apierrors.IsNotFound(err) {
		return "", errors.New(`this cluster has no ClusterNetwork "default", so its network plugin is unknown`)
	}
	if err != nil {
		return "", fmt.Errorf("find the network plugin: %w", err)
	}
	return network.PluginName, nil
}

// enforcesPolicies reports whether users expect the network plugin to enforce network policies. For
// an administrator's own plugin, this is the case only if the cluster has network policies.
func (n *testNetwork) enforcesPolicies(ctx context.Context, plugin string) (bool, error) {
	if plugin != networkplugin.CNI {
		return plugin != networkplugin.Subnet, nil
	}
	policies, err := n.kubernetes.NetworkingV1().NetworkPolicies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	return len(policies.Items) > 0, nil
}

// usableNodes returns the ready and schedulable nodes.
func usableNodes(ctx context.Context, env *environment) (nodes []corev1.Node, err error) {
	list, err := env.kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, node := range list.Items {
		if !node.Spec.Unschedulable && nodeReady(&node) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("no node is ready and schedulable; see oc adm diagnostics NodeDefinitions")
	}
	return nodes, nil
}

// inside returns probes for the connections within each project.
func (n *testNetwork) inside() (probes []probe) {
	for _, from := range n.pods {
		for _, to := range n.pods {
			if to.project != from.project {
				continue
			}
			if to != from {
				probes = append(probes, probe{id: "pod-to-pod", from: from, to: "a pod on node " + to.node, address: at(to.address, serverPort)})
			}
			probes = append(probes, probe{id: "pod-to-service", from: from, to: "the service of a pod on node " + to.node, address: at(to.service, serverPort)})
		}
	}
	return probes
}

// outside returns probes for the connections from the pods to the API, to the nodes and to the
// server outside the cluster.
func (n *testNetwork) outside() (probes []probe) {
	for _, from := range n.pods {
		probes = append(probes, probe{id: "dns", from: from, to: "the API server by the name of its service", address: "kubernetes.default.svc:443"})
		for _, node := range n.nodes {
			for _, status := range node.Status.Addresses {
				if status.Type == corev1.NodeInternalIP {
					address := at(status.Address, int(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
					probes = append(probes, probe{id: "pod-to-node", from: from, to: "the kubelet of node " + node.Name, address: address})
					break // the API server also uses only the first address
				}
			}
		}
		if n.external != "" {
			probes = append(probes, probe{id: "external", from: from, to: n.external, address: n.external})
		}
	}
	return probes
}

// across returns probes for the connections from the first project's pods to the second project's
// pods.
func (n *testNetwork) across(refused bool) (probes []probe) {
	for _, from := range n.pods {
		for _, to := range n.pods {
			if from.project != n.projects[0] || to.project == from.project {
				continue
			}
			for description, address := range map[string]string{"a pod": to.address, "the service of a pod": to.service} {
				probes = append(probes, probe{
					id: "isolation", from: from, to: description + " of another project on node " + to.node, address: at(address, serverPort), refused: refused,
				})
			}
		}
	}
	return probes
}

func at(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }

// policyTimeout is the maximum time to wait until a network policy takes effect.
const policyTimeout = 15 * time.Second

// tryPolicy isolates the second project's pods with a network policy. It returns the connections
// that still succeed.
func (n *testNetwork) tryPolicy(ctx context.Context) (wrong []result, err error) {
	if err := n.isolate(ctx, n.projects[1]); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(policyTimeout); ; {
		wrong, err := n.try(ctx, n.across(true))
		if err != nil || len(wrong) == 0 || time.Now().After(deadline) {
			return wrong, err
		}
	}
}

// result is a probe whose outcome is not as expected. message is the error of a failed connection.
type result struct {
	probe
	message string
}

// script opens a connection to each HOST:PORT argument, 20 at a time. For each argument, it prints
// a line with the argument's number and, if the connection failed, the error.
const script = `number=0
for address in "$@"; do
	(if error=$(nc -w 3 "${address%:*}" "${address##*:}" -e true 2>&1); then echo $number; else echo "$number ${error:-failed}"; fi) &
	number=$((number + 1))
	[ $((number % 20)) = 0 ] && wait
done
wait`

// try runs all probes, using one command for each pod. It returns the probes whose outcome is not
// as expected.
func (n *testNetwork) try(ctx context.Context, probes []probe) (wrong []result, err error) {
	byPod := map[*testPod][]probe{}
	for _, p := range probes {
		byPod[p.from] = append(byPod[p.from], p)
	}
	var mu sync.Mutex
	var tasks sync.WaitGroup
	var errs []error
	for pod, own := range byPod {
		tasks.Go(func() {
			failed, err := n.tryFrom(ctx, pod, own)
			mu.Lock()
			defer mu.Unlock()
			wrong, errs = append(wrong, failed...), append(errs, err)
		})
	}
	tasks.Wait()
	return wrong, errors.Join(errs...)
}

// tryFrom runs the probes of one pod.
func (n *testNetwork) tryFrom(ctx context.Context, pod *testPod, probes []probe) (wrong []result, err error) {
	command := []string{"sh", "-c", script, "sh"}
	for _, p := range probes {
		command = append(command, p.address)
	}
	config, err := n.factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	var output, messages bytes.Buffer
	streams := genericiooptions.IOStreams{Out: &output, ErrOut: &messages}
	if err := objects.Exec(ctx, config, pod.project, pod.name, "server", command, streams); err != nil {
		return nil, fmt.Errorf("run a command in a pod on node %q: %w\n%s", pod.node, err, messages.String())
	}
	return results(&output, probes)
}

// results parses the script's output. It returns the probes whose outcome is not as expected.
func results(output io.Reader, probes []probe) (wrong []result, err error) {
	content, err := io.ReadAll(output)
	if err != nil {
		return nil, err
	}
	seen := 0
	for line := range strings.Lines(string(content)) {
		text, message, failed := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 || number >= len(probes) {
			return nil, fmt.Errorf("parse connection result: %q", line)
		}
		if seen++; failed != probes[number].refused {
			wrong = append(wrong, result{probes[number], message})
		}
	}
	if seen != len(probes) {
		return nil, fmt.Errorf("parse connection results: there are %d, want %d", seen, len(probes))
	}
	return wrong, nil
}

// summarize combines all results that have the same problem ID and the same nodes into one problem.
func summarize(wrong []result) (problems []problem) {
	byNodes := map[string]problem{}
	for _, r := range wrong {
		reason := fmt.Sprintf("pods on node %s cannot reach %s (%s)", r.from.node, r.to, r.message)
		switch {
		case r.refused:
			reason = fmt.Sprintf("pods on node %s can reach %s, although they must be isolated from it", r.from.node, r.to)
		case r.id == "isolation":
			reason += ", although no rule isolates them"
		}
		byNodes[r.id+r.from.node+r.to] = problem{r.id, reason}
	}
	for _, key := range slices.Sorted(maps.Keys(byNodes)) {
		problems = append(problems, byNodes[key])
	}
	return problems
}
