// Package masters tests clusters with several masters. The clusters must not lose data, and must
// continue to work when a master is lost.
package masters

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/register"
)

func TestMain(m *testing.M) { kit.Main(m) }

// waitMembers waits until etcd has the given number of members with the given role, "voter" or
// "learner".
func waitMembers(c *kit.Cluster, count int, role string) {
	c.WaitFor(fmt.Sprintf("%d members with the role %s", count, role), func(context.Context) error {
		result := c.Slipway("etcd", "members")
		if lines := result.Stdout + result.Stderr; result.Code != 0 || strings.Count(lines, " "+role+" ") != count {
			return fmt.Errorf("slipway etcd members: %s", lines)
		}
		return nil
	})
}

// waitLeader waits until a master other than former holds the lease of Slipway's controllers, and
// returns that master's name.
func waitLeader(c *kit.Cluster, former string) (name string) {
	c.WaitFor("a leader other than "+former, func(ctx context.Context) error {
		lease, err := c.Client.CoordinationV1().Leases("kube-system").Get(ctx, "slipway-controllers", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder != nil {
			name = *holder
		}
		if name == "" || name == former {
			return fmt.Errorf("the leader is %q", name)
		}
		return nil
	})
	return name
}

// waitControllers creates a namespace, and waits until the controllers have created its service
// accounts.
func waitControllers(c *kit.Cluster, name string) {
	c.WaitFor("namespace "+name, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an earlier attempt succeeded, but got no response
			return nil
		}
		return err
	})
	c.WaitFor("service account of namespace "+name, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "builder", metav1.GetOptions{})
		return err
	})
}

// refuseMaster checks that a host cannot join as a master if its settings differ or if a firewall
// blocks the ports of etcd.
func refuseMaster(t *testing.T, c *kit.Cluster) {
	t.Helper()
	const network = "10.99.0.0/16"
	host := c.NewHost("refused", kit.Options{Master: "networkConfig: {serviceNetworkCIDR: " + network + "}"})
	token := c.MasterToken()
	refuse := func(reason string) {
		t.Helper()
		result := host.Slipway("up", "--join", c.APIURL(), "--token", token)
		if result.Code == 0 || !strings.Contains(result.Stderr, reason) {
			t.Errorf("join of a master, want %q: %+v", reason, result)
		}
		if _, err := os.Stat(host.Path("pki")); err == nil {
			t.Error("the host has keys of the cluster")
		}
	}
	refuseBehindFirewall := func(hook, port, reason string) {
		t.Helper()
		stop, err := host.Filter(hook, "tcp dport "+port)
		if err != nil {
			t.Fatal(err)
		}
		refuse(reason)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	refuseBehindFirewall("input", "2380", "master first cannot connect to this host")
	if members := c.MustSlipway("etcd", "members"); strings.Contains(members, " learner ") {
		t.Errorf("a host behind a firewall is a member of etcd:\n%s", members)
	}
	refuse("differs from the cluster's: networkConfig.serviceNetworkCIDR;")
	content, err := os.ReadFile(host.MasterFile())
	if err == nil {
		err = os.WriteFile(host.MasterFile(), bytes.ReplaceAll(content, []byte(network), []byte("172.30.0.0/16")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"2379", "2380"} {
		refuseBehindFirewall("output", port, "the etcd member of master first does not respond")
	}
}

// checkRegistry checks that a master that does not run the registry forwards requests to the
// registry.
func checkRegistry(t *testing.T, c *kit.Cluster) {
	t.Helper()
	settings, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: c.Dial, TLSClientConfig: settings, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://%s:5000/v2/", c.Address), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if challenge := response.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, "https://"+c.Address.String()+":5000/") {
		t.Errorf("the registry at master %s returns %s and the challenge %q", c.Address, response.Status, challenge)
	}
}

// seed determines the operations of the register clients.
const seed = 1

func TestThreeMastersLoseNothing(t *testing.T) {
	first := kit.New(t, kit.Options{Segment: true, Node: "nodeName: first"})
	lb := newBalancer(t, first)
	first.Up()
	refuseMaster(t, first) // the refused host leaves a learner without a process for a minute
	tokens := strings.Fields(first.MustSlipway("token", "create", "--role", "master", "--uses", "2"))
	if len(tokens) != 2 {
		t.Fatalf("slipway token create printed %d tokens", len(tokens))
	}
	second := first.JoinMasterAt(first.APIURL(), tokens[0], "second", kit.Options{})
	waitMembers(first, 1, "voter")
	waitControllers(second, "on-standby") // a learner's API server must also serve reads and writes

	third := first.JoinMasterAt(first.APIURL(), tokens[1], "third", kit.Options{})
	waitMembers(third, 3, "voter")
	masters := map[string]*kit.Cluster{"first": first, "second": second, "third": third}
	for _, name := range []string{"pki/ca.key", "pki/encryption.yaml", "session-secrets.yaml"} {
		own, err := os.ReadFile(first.Path(name))
		theirs, theirErr := os.ReadFile(third.Path(name))
		if err != nil || theirErr != nil || string(own) != string(theirs) {
			t.Errorf("%s differs between masters: %v, %v", name, err, theirErr)
		}
	}
	// The registry runs on the first master, because its images are in a directory on that host.
	third.MustSlipway("images", "publish", kit.ToolsImage, "default/published:v1")
	first.OC("get", "istag", "published:v1")
	checkRegistry(t, third)
	node := first.Join("worker", kit.Options{Router: true})
	startApplication(first)

	waitMembers(first, 0, "learner") // the controller must remove the learner without a process

	lb.configure(first, 3)
	source := lb.source(first, "third")
	writing := maps.Clone(masters)
	writing["balancer"] = lb.client(t, first, source)
	w := startWriters(writing)
	servers := []*rest.Config{first.Config, second.Config, third.Config, writing["balancer"].Config}
	registers := register.Start(t, servers, seed)
	process := node.Status().PID("node")
	t.Run("LeaderAndFollowerAreLost", func(t *testing.T) { loseMasters(t, masters, node, lb, w) })
	if current := node.Status().PID("node"); current != process || process == 0 {
		t.Errorf("the node's process was %d, and after the loss of two masters it is %d", process, current)
	}
	t.Run("NodeIsLost", func(t *testing.T) {
		node := node.For(t)
		node.KillEverything()
		waitApplication(first.For(t), second.For(t), third.For(t))
		node.MustSlipway("up")
		node.WaitReady()
		waitApplication(node)
	})
	t.Run("LeaderLosesItsNetwork", func(t *testing.T) {
		name := waitLeader(second.For(t), "")
		master, other := masters[name].For(t), second.For(t)
		if name == "second" {
			other = first.For(t)
		}
		if err := master.SetConnected(false); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		waitLeader(other, name)
		t.Logf("another master leads after %v", time.Since(start))
		waitControllers(other, "after-"+name)
		w.waitWrites(other, "other")
		w.waitWrites(other, "balancer")
		waitApplication(node.For(t))
		if err := master.SetConnected(true); err != nil {
			t.Fatal(err)
		}
		master.WaitReady()
		waitMembers(master, 3, "voter")
	})
	t.Run("NodeOutlivesItsAPIServer", func(t *testing.T) { checkNodeWithoutAPI(t, second.For(t), first.For(t), w) })
	w.check(t)
	registers.Check(t)
	t.Run("CommandsReachNodeThroughEachMaster", func(t *testing.T) { checkCommands(t, masters, node) })
	t.Run("Status", func(t *testing.T) { checkStatus(t, first.For(t)) })
	t.Run("UsersLogInAtEachMaster", func(t *testing.T) {
		password := first.For(t).DeveloperPassword()
		if result := second.For(t).SlipwayWithInput("secret\n", "htpasswd", "set", "ann"); result.Code != 0 {
			t.Errorf("slipway htpasswd set: %+v", result)
		}
		none := []string{"KUBECONFIG=" + filepath.Join(t.TempDir(), "none")}
		for name, other := range map[string]string{"first": "second", "second": "third", "third": "first"} {
			master, other := masters[name].For(t), masters[other].For(t)
			waitLogin(t, master, "ann", "secret")
			token := waitLogin(t, master, "developer", password)
			result := other.SlipwayWith(none, "oc", "whoami", "--insecure-skip-tls-verify", "--server", other.APIURL(), "--token", token)
			if result.Stdout != "developer\n" {
				t.Errorf("user of a token of %s at %s: %+v", master.APIURL(), other.APIURL(), result)
			}
		}
	})
	t.Run("SessionsAreValidAtEachMaster", func(t *testing.T) { checkSessions(t, lb, masters) })
	t.Run("MastersShareLimitOfGuesses", func(t *testing.T) { checkLogins(t, masters) })
	t.Run("MastersShareQuota", func(t *testing.T) { checkQuota(t, masters) })
	t.Run("LoadBalancerIsLost", func(t *testing.T) { checkWithoutBalancer(t, lb, first.For(t), node.For(t)) })
	checkExpiry(t, masters, node)
	agent := newFlannel(t, first, node)
	agent.start(t, third)
	subnet := agent.files.Subnet()
	t.Run("LostMasterIsRemoved", func(t *testing.T) {
		third.For(t).KillEverything()
		waitApplication(first.For(t), second.For(t), node.For(t))
		first.For(t).OC("adm", "taint", "nodes", "third", "node.kubernetes.io/out-of-service=lost:NoExecute")
		// Because of the taint, the deletion does not wait for the pods.
		first.For(t).OC("delete", "node", "third")
		waitMembers(first.For(t), 2, "voter")
		if nodes := first.For(t).OC("get", "nodes"); strings.Contains(nodes, "third") {
			t.Errorf("the node remains:\n%s", nodes)
		}
		if clients := first.For(t).OC("get", "oauthclients", "-o", "yaml"); strings.Contains(clients, third.APIURL()) {
			t.Errorf("OAuth clients redirect to the removed master:\n%s", clients)
		}
		waitControllers(second.For(t), "after-removal")
		lb.configure(first.For(t), 2)
		lb.waitMaster(first.For(t), source, "third", false)
	})
	fourth := first.JoinMasterAt(lb.url(), first.MasterToken(), "fourth", kit.Options{})
	waitMembers(first, 3, "voter")
	agent.start(t, third, fourth)
	if got := agent.files.Subnet(); got != subnet || subnet == "" {
		t.Errorf("flannel's subnet is %q, and was %q before a master was replaced", got, subnet)
	}
	loseQuorum(t, w, first, second, fourth, node)
	restoreMasters(t, w, lb, first, node)
}

// waitLogin waits until a user can log in at a master, and returns the user's token.
func waitLogin(t *testing.T, c *kit.Cluster, user, password string) (token string) {
	t.Helper()
	environment := []string{"KUBECONFIG=" + filepath.Join(t.TempDir(), "config")}
	c.WaitFor("login of "+user, func(context.Context) error {
		result := c.SlipwayWith(environment, "oc", "login", "--insecure-skip-tls-verify", "-u", user, "-p", password, c.APIURL())
		if result.Code != 0 {
			return fmt.Errorf("oc login at %s: %s%s", c.APIURL(), result.Stdout, result.Stderr)
		}
		token = strings.TrimSpace(c.SlipwayWith(environment, "oc", "whoami", "-t").Stdout)
		return nil
	})
	return token
}

// checkStatus checks the commands that display the state of all masters.
func checkStatus(t *testing.T, c *kit.Cluster) {
	t.Helper()
	var result kit.Result
	c.WaitFor("healthy cluster", func(context.Context) error {
		if result = c.Slipway("status", "--cluster"); result.Code != 0 {
			return fmt.Errorf("slipway status --cluster: %s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	for _, want := range []string{"first", "second", "third", "worker", "slipway-controllers", "kube-scheduler"} {
		if !strings.Contains(result.Stdout, want) {
			t.Errorf("%s is not in the status:\n%s", want, result.Stdout)
		}
	}
	if status := c.MustSlipway("status"); strings.Contains(status, "differs from the file of master") {
		t.Errorf("masters with the same settings differ:\n%s", status)
	}
	if health := c.MustSlipway("etcd", "health"); strings.Count(health, " yes ") != 3 {
		t.Errorf("slipway etcd health:\n%s", health)
	}
	if freed := c.MustSlipway("etcd", "defrag"); strings.Count(freed, "bytes now") != 3 {
		t.Errorf("slipway etcd defrag:\n%s", freed)
	}
	if check := c.MustSlipway("upgrade", "--check"); !strings.Contains(check, "Nothing prevents the upgrade") {
		t.Errorf("slipway upgrade --check:\n%s", check)
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	c.MustSlipway("etcd", "snapshot", "save", path)
	if status := c.MustSlipway("etcd", "snapshot", "status", path); !strings.Contains(status, "is complete") {
		t.Errorf("slipway etcd snapshot status: %s", status)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if result := c.Slipway("etcd", "snapshot", "status", path); result.Code == 0 {
		t.Error("a truncated snapshot is accepted as complete")
	}
}
