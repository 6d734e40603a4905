package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	ownProjects = 10    // number of projects that belong to the user
	allProjects = 10000 // number of projects in the cluster
	logins      = 60
	tokenReads  = 300 // number of requests with each kind of credentials
	sccPods     = 200
	// maxProjects, maxSCC and maxVersion are the targets, in seconds.
	maxProjects = 0.040
	maxSCC      = 0.005
	maxVersion  = 0.015
	tenant      = "developer"
	// Slipway's controllers set these annotations on a project, in this order.
	uidRange  = "openshift.io/sa.scc.uid-range"
	ownsRoles = "slipway.openshift.io/default-roles"
)

// tenantsMaster is the configuration of the tenants' cluster. So that ten thousand projects can be
// created in a minute, the controllers create no service accounts in namespaces. Therefore, they
// also create no objects that depend on service accounts.
const tenantsMaster = `apiVersion: v1
kind: MasterConfig
serviceAccountConfig: {managedNames: []}
kubernetesMasterConfig:
  controllerArguments:
    controllers: ["*", "-persistentvolume-attach-detach-controller", "-persistentvolume-expander-controller", "-serviceaccount-controller", "-root-ca-certificate-publisher-controller"]
`

// tenants contains a user's measurements in a cluster with many users.
type tenants struct {
	loginRate              float64 // number of logins per second
	certificate, hit, miss []time.Duration
	pods                   []time.Duration // durations of requests to create a pod
	scc                    float64         // seconds of each request in SCC admission
	// projects, command and empty contain the times of a request for the user's projects, of `oc
	// get projects`, and of `oc version --client`.
	projects, command, empty []time.Duration
	// emptyCPU contains the CPU times of `oc version --client`.
	emptyCPU []time.Duration
}

// measureTenants boots a separate cluster, measures it and removes it.
func measureTenants(ctx context.Context, dir, program, oc string) (*tenants, error) {
	result := &tenants{}
	return result, onSlipway(ctx, filepath.Join(dir, "tenants"), "/slipway-bench-tenants", program, tenantsMaster, func(c *cluster, s *slipway) (err error) {
		t := &tenantFixture{cluster: c, host: s.host, oc: oc, result: result}
		if t.config, err = hostConfig(s.host, s.data("admin.kubeconfig")); err != nil {
			return err
		}
		password, err := os.ReadFile(s.data("developer.password"))
		if err != nil {
			return err
		}
		return t.measure(ctx, string(password))
	})
}

// tenantFixture is the cluster in which tenants are measured.
type tenantFixture struct {
	*cluster
	host   *host.Host
	config *rest.Config // the administrator's client configuration
	oc     string
	result *tenants
}

// hostConfig returns the client configuration for a client outside the host's namespace, from the
// kubeconfig at path.
func hostConfig(h *host.Host, path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", path, err)
	}
	config.Dial, config.QPS = h.Dial, -1
	return config, nil
}

// measure runs all measurements. The projects come last, because ten thousand projects would
// disturb the other measurements.
func (t *tenantFixture) measure(ctx context.Context, password string) error {
	tokens, err := t.measureLogins(ctx, password)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if err := t.measureTokens(ctx, tokens); err != nil {
		return fmt.Errorf("use tokens: %w", err)
	}
	user := rest.AnonymousClientConfig(t.config)
	user.BearerToken, user.Dial, user.QPS = tokens[0], t.host.Dial, -1
	for i := range ownProjects {
		if err := t.makeProject(ctx, i); err != nil {
			return err
		}
	}
	if err := t.measureSCC(ctx, user); err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	if err := t.measureProjects(ctx, user); err != nil {
		return fmt.Errorf("read projects: %w", err)
	}
	return nil
}

func projectName(i int) string { return fmt.Sprintf("bench-%05d", i) }

// makeProject creates namespace number i. The first ownProjects namespaces belong to the tenant.
func (t *tenantFixture) makeProject(ctx context.Context, i int) error {
	name := projectName(i)
	if _, err := t.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if i >= ownProjects {
		return nil
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
	}
	_, err := t.client.RbacV1().RoleBindings(name).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// waitObjects waits until Slipway's controllers have set their annotations on a project.
func (t *tenantFixture) waitObjects(ctx context.Context, i int) error {
	return poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		namespace, err := t.client.CoreV1().Namespaces().Get(ctx, projectName(i), metav1.GetOptions{})
		return err == nil && namespace.Annotations[uidRange] != "" && namespace.Annotations[ownsRoles] != "", err
	})
}

// measureProjects creates the remaining projects and measures requests for the tenant's projects.
func (t *tenantFixture) measureProjects(ctx context.Context, user *rest.Config) error {
	if err := host.Each(ctx, allProjects-ownProjects, func(i int) error { return t.makeProject(ctx, ownProjects+i) }); err != nil {
		return err
	}
	if err := t.waitObjects(ctx, allProjects-1); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return err
	}
	for range tokenReads {
		start := time.Now()
		body, err := client.RESTClient().Get().AbsPath("/apis/project.openshift.io/v1/projects").DoRaw(ctx)
		if err != nil {
			return err
		}
		t.result.projects = append(t.result.projects, time.Since(start))
		var list struct{ Items []types.NamespacedName }
		if err := json.Unmarshal(body, &list); err != nil || len(list.Items) != ownProjects {
			return fmt.Errorf("count projects: %d, not %d (%w)", len(list.Items), ownProjects, err)
		}
	}
	kubeconfig := t.host.Path("tenant.kubeconfig")
	if err := host.WriteKubeconfig(kubeconfig, user); err != nil {
		return err
	}
	if t.result.command, _, err = t.commands(ctx, "get", "projects", "--kubeconfig", kubeconfig); err != nil {
		return err
	}
	t.result.empty, t.result.emptyCPU, err = t.commands(ctx, "version", "--client")
	return err
}

// commands runs oc several times, after a first run that is not measured. It returns the elapsed
// times and the CPU times.
func (t *tenantFixture) commands(ctx context.Context, args ...string) (took, cpu []time.Duration, err error) {
	const times = 20
	for i := range times + 1 {
		command := exec.CommandContext(ctx, t.oc, args...)
		command.Env = append(os.Environ(), "HOME="+t.host.Dir)
		start := time.Now()
		if err = t.host.Start(command); err == nil {
			err = command.Wait()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("oc %s: %w", args[0], err)
		}
		if i > 0 {
			took = append(took, time.Since(start))
			cpu = append(cpu, command.ProcessState.UserTime()+command.ProcessState.SystemTime())
		}
	}
	return took, cpu, nil
}
