package recovery

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// identity contains the properties that a restored host must share with the lost host.
type identity struct{ authority, signingKey, password string }

func identityOf(t *testing.T, c *kit.Cluster) identity {
	t.Helper()
	read := func(names ...string) string {
		content, err := os.ReadFile(c.Path(names...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	return identity{read("pki", "ca.key"), read("pki", "serviceaccounts.private.key"), read("developer.password")}
}

// secretValue is the content of a secret that the snapshot contains.
const secretValue = "a value that is only stored in encrypted form"

// revisionOf returns etcd's current revision.
func revisionOf(t *testing.T, c *kit.Cluster) int64 {
	t.Helper()
	var response struct{ Header struct{ Revision int64 } }
	output := c.MustSlipway("etcdctl", "get", "/", "-w", "json")
	if err := json.Unmarshal([]byte(output), &response); err != nil || response.Header.Revision == 0 {
		t.Fatalf("read revision: %v: %s", err, output)
	}
	return response.Header.Revision
}

// checkRestored tests that the objects are the same as in the snapshot, and that a service account
// token from before the snapshot is still valid.
func checkRestored(t *testing.T, c *kit.Cluster, token string) {
	t.Helper()
	if got := strings.TrimSpace(c.OC("get", "secret", "saved", "-o", "jsonpath={.data.key}")); got != base64.StdEncoding.EncodeToString([]byte(secretValue)) {
		t.Errorf("the restored secret contains %q", got)
	}
	if later := c.OC("get", "configmaps", "-o", "name"); strings.Contains(later, "later") {
		t.Errorf("an object that is newer than the snapshot still exists:\n%s", later)
	}
	var review *authenticationv1.TokenReview
	c.WaitFor("review of a token", func(ctx context.Context) (err error) {
		review = &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review, err = c.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		return err
	})
	if !review.Status.Authenticated {
		t.Errorf("a token from before the restore is rejected: %+v", review.Status)
	}
	// The controllers must reconcile the restored objects.
	c.OC("create", "namespace", "after-restore")
	c.WaitFor("service account of a new namespace", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts("after-restore").Get(ctx, "builder", metav1.GetOptions{})
		return err
	})
}

// checkMasterRestart restarts the control plane with OpenShift's master-restart command.
func checkMasterRestart(t *testing.T, c *kit.Cluster) {
	t.Helper()
	former := processID(c)
	for _, component := range []string{"api", "controllers"} {
		command := c.StartSlipwayAs("master-restart", nil, component)
		if err := command.Wait(); err != nil {
			t.Errorf("master-restart %s: %v", component, err)
		}
		if current := processID(c); current == former || !c.Status().Ready {
			t.Errorf("after master-restart %s, process %d runs, ready is %v", component, current, c.Status().Ready)
		}
		former = processID(c)
	}
	if result := c.Slipway("master-restart", "registry"); result.Code == 0 || !strings.Contains(result.Stderr, "a master has no such component") {
		t.Errorf("slipway master-restart registry: %+v", result)
	}
}

// checkStop stops control plane components with a command. In OpenShift, administrators stop them
// by moving their manifests to another directory.
func checkStop(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.MustSlipway("master", "stop", "controllers")
	states := statesOf(c)
	for name, want := range map[string]string{"controllers": "standby", "scheduler": "standby", "deployments": "standby", "apiserver": "ready"} {
		if states[name] != want {
			t.Errorf("without controllers, %s is %s, want %s", name, states[name], want)
		}
	}
	if status := c.MustSlipway("status"); !strings.Contains(status, "slipway master start controllers") {
		t.Errorf("the status does not name the stopped component:\n%s", status)
	}
	c.OC("create", "namespace", "stopped")
	c.MustSlipway("master", "stop", "etcd")
	if state := statesOf(c)["etcd"]; state != "standby" {
		t.Errorf("etcd is %s", state)
	}
	c.MustSlipway("master", "start", "etcd")
	c.MustSlipway("master", "start", "controllers")
	c.WaitFor("service account of a namespace", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts("stopped").Get(ctx, "builder", metav1.GetOptions{})
		return err
	})
	if result := c.Slipway("master", "stop", "kubelet"); result.Code == 0 || !strings.Contains(result.Stderr, "cannot be stopped") {
		t.Errorf("slipway master stop kubelet: %+v", result)
	}
}

// statesOf returns the states of the control plane's components, keyed by name.
func statesOf(c *kit.Cluster) map[string]string {
	states := map[string]string{}
	for _, process := range c.Status().Processes {
		for _, part := range process.Components {
			if process.Name == "control-plane" {
				states[part.Name] = part.State
			}
		}
	}
	return states
}

// checkEtcdctl runs the guide's etcdctl commands with both versions of etcd's API.
func checkEtcdctl(t *testing.T, c *kit.Cluster) {
	t.Helper()
	three := []string{"ETCDCTL_API=3"}
	cert, key, ca := c.Path("pki", "master.etcd-client.crt"), c.Path("pki", "master.etcd-client.key"), c.Path("pki", "master.etcd-ca.crt")
	tests := []struct {
		environment []string
		args        []string
		want        string
	}{
		{three, []string{"endpoint", "health"}, "is healthy"},
		{three, []string{"--cert", cert, "--key", key, "--cacert", ca, "--endpoints=https://127.0.0.1:2379", "endpoint", "health"}, "is healthy"},
		{nil, []string{"--cert-file", cert, "--key-file", key, "--ca-file", ca, "--peers=https://127.0.0.1:2379", "cluster-health"}, "is healthy"},
		{nil, []string{"-C", "https://127.0.0.1:2379", "--ca-file=" + ca, "member", "list"}, "started"},
		{three, []string{"member", "list", "-w", "table"}, "started"},
		{three, []string{"get", "/registry/namespaces/default", "--keys-only"}, "/registry/namespaces/default"},
		{three, []string{"snapshot", "restore", "x.db"}, "slipway etcd snapshot restore"},
		{nil, []string{"ls", "/"}, "API version 2"},
	}
	for _, tt := range tests {
		result := c.SlipwayWith(tt.environment, append([]string{"etcdctl"}, tt.args...)...)
		if output := result.Stdout + result.Stderr; !strings.Contains(output, tt.want) {
			t.Errorf("etcdctl %q prints %q, want %q", tt.args, output, tt.want)
		}
	}
}

// processID returns the PID of the control plane.
func processID(c *kit.Cluster) int {
	for _, process := range c.Status().Processes {
		if process.Name == "control-plane" {
			return process.PID
		}
	}
	return 0
}

func TestSnapshotAndBackupRestoreTheCluster(t *testing.T) {
	c := kit.Start(t, kit.Options{Master: "slipway: {etcdSnapshots: {interval: 2s, keep: 2}}"})
	before := identityOf(t, c)
	c.OC("create", "secret", "generic", "saved", "--from-literal=key="+secretValue)
	token := strings.TrimSpace(c.OC("create", "token", "default", "--duration=2h"))
	dir := t.TempDir()
	snapshot, archive := filepath.Join(dir, "snapshot.db"), filepath.Join(dir, "host.tar.gz")
	c.MustSlipway("etcd", "snapshot", "save", snapshot)
	if content, err := os.ReadFile(snapshot); err != nil || !bytes.Contains(content, []byte("/registry/secrets/default/saved")) || bytes.Contains(content, []byte(secretValue)) {
		t.Errorf("the snapshot does not contain the secret in encrypted form: %v", err)
	}
	c.MustSlipway("backup", archive)
	if info, err := os.Stat(archive); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v", info, err)
	}
	former := recordFormerVersion(t, c)
	checkMasterRestart(t, c)
	beforeUpgrade := c.Path("snapshots", "before-upgrade-of-"+former+".db")
	if status := c.MustSlipway("etcd", "snapshot", "status", beforeUpgrade); !strings.Contains(status, "is complete") {
		t.Errorf("the snapshot before the upgrade: %s", status)
	}
	checkStop(t, c)
	checkEtcdctl(t, c)
	checkMember(t, c)
	checkScheduled(t, c)
	c.OC("create", "configmap", "later")
	revision := revisionOf(t, c)

	if result := c.Slipway("etcd", "snapshot", "restore", "--yes", snapshot); result.Code == 0 || !strings.Contains(result.Stderr, "slipway down") {
		t.Errorf("the data of a running cluster was replaced: %+v", result)
	}
	c.MustSlipway("down")
	refuseJump(t, c)
	// An upgrade can be reverted in the same way.
	if output := c.MustSlipway("etcd", "snapshot", "restore", "--yes", beforeUpgrade); !strings.Contains(output, "The previous data is in") {
		t.Errorf("slipway etcd snapshot restore: %s", output)
	}
	c.Up()
	checkRestored(t, c, token)
	if restored := revisionOf(t, c); restored <= revision {
		t.Errorf("the restore changed etcd's revision from %d to %d, and clients expect that it increases", revision, restored)
	}

	if result := c.Slipway("restore", archive); result.Code == 0 {
		t.Errorf("a running host is replaced: %+v", result)
	}
	c.MustSlipway("down", "--purge")
	commands := commandsOf(t, c, "docs/admin/backup.md", "## Restore a host")
	if want := []string{"slipway restore " + documentArchive, "slipway up", "slipway status", "oc get nodes,projects"}; !slices.Equal(commands, want) {
		t.Errorf("the guide's commands for restoring a host are %q, want %q", commands, want)
	}
	// The restored host can have a different address.
	if err := c.Move(netip.MustParsePrefix("198.51.100.7/24")); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("restore", archive)
	if after := identityOf(t, c); after != before {
		t.Error("the keys of the restored host differ")
	}
	for name, mode := range map[string]os.FileMode{"pki/ca.key": 0o600, "master/master-config.yaml": 0o600} {
		if info, err := os.Stat(c.Path(name)); err != nil || info.Mode() != mode {
			t.Errorf("%s is restored as %v, %v", name, info, err)
		}
	}
	c.Up()
	c.MustSlipway("status")
	if nodes := c.OC("get", "nodes,projects", "-o", "wide"); !strings.Contains(nodes, " 198.51.100.7 ") {
		t.Errorf("the node does not have the address of its machine:\n%s", nodes)
	}
	checkRestored(t, c, token)
	checkLogin(t, c)
}

// recordFormerVersion makes the control plane's next start an upgrade from a different Kubernetes
// patch version, which it returns.
func recordFormerVersion(t *testing.T, c *kit.Cluster) string {
	t.Helper()
	path := c.Path("master", "kubernetes-version")
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	former := regexp.MustCompile(`^v[0-9]+\.[0-9]+`).FindString(string(recorded)) + ".99"
	if err := os.WriteFile(path, []byte(former+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return former
}

// refuseJump tests that the control plane rejects the data of a much older Kubernetes version, with
// an error that describes the upgrade path.
func refuseJump(t *testing.T, c *kit.Cluster) {
	t.Helper()
	path := c.Path("master", "kubernetes-version")
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("v1.30.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output := c.UpFails(); !strings.Contains(output, "first upgrade to a Slipway version that contains Kubernetes 1.31") {
		t.Errorf("an upgrade that skips versions prints:\n%s", output)
	}
	if err := os.WriteFile(path, recorded, 0o600); err != nil {
		t.Fatal(err)
	}
}

// documentArchive is the path of the archive in the guide's commands.
const documentArchive = "/backup/slipway-master-20261123T200000Z.tar.gz"

// commandsOf returns the commands in a document's section, which are the lines of its code blocks.
func commandsOf(t *testing.T, c *kit.Cluster, document, title string) (commands []string) {
	t.Helper()
	content, err := os.ReadFile(c.RepositoryFile(document))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n"+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command := strings.TrimSpace(line); strings.HasPrefix(line, "        ") {
			commands = append(commands, command)
		}
	}
	return commands
}

// checkScheduled tests that Slipway saves etcd snapshots automatically, that the newest snapshots
// are complete, and that the status lists them.
func checkScheduled(t *testing.T, c *kit.Cluster) {
	t.Helper()
	var files []string
	c.WaitFor("snapshots", func(context.Context) (err error) {
		files, err = filepath.Glob(c.Path("snapshots", "etcd-*.db"))
		if err == nil && len(files) < 2 {
			err = fmt.Errorf("the snapshots are %q", files)
		}
		return err
	})
	dir := c.Path("snapshots")
	if status := c.MustSlipway("status"); !strings.Contains(status, "in "+dir+", the newest is ") {
		t.Errorf("the status does not show the snapshots:\n%s", status)
	}
	// Retry, because the scheduled cleanup might remove the file in the meantime.
	c.WaitFor("check of a snapshot", func(context.Context) error {
		files, err := filepath.Glob(c.Path("snapshots", "etcd-*.db"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("snapshots: %q, %v", files, err)
		}
		newest := files[len(files)-1]
		status, hash := c.Slipway("etcd", "snapshot", "status", newest), c.Slipway("etcdutl", "snapshot", "status", newest, "-w", "json")
		if !strings.Contains(status.Stdout, "is complete") || !strings.Contains(hash.Stdout, `"totalKey"`) {
			return fmt.Errorf("%+v, %+v", status, hash)
		}
		return nil
	})
}

// memberVariables contains the beginnings of the environment variables for a new member's
// etcd.conf.
var memberVariables = []string{`ETCD_NAME="second"`, `ETCD_INITIAL_CLUSTER="`, `ETCD_INITIAL_CLUSTER_STATE="existing"`}

// checkMember adds and removes an etcd member, with the guide's commands and with Slipway's
// commands.
func checkMember(t *testing.T, c *kit.Cluster) {
	t.Helper()
	output := c.MustSlipway("etcdctl", "member", "add", "second", "--learner", "--peer-urls=https://192.0.2.9:2380")
	for _, want := range memberVariables {
		if !strings.Contains(output, want) {
			t.Errorf("etcdctl member add lacks %q:\n%s", want, output)
		}
	}
	fields := strings.Fields(output)
	if len(fields) < 2 {
		t.Fatalf("etcdctl member add: %s", output)
	}
	c.MustSlipway("etcdctl", "member", "remove", fields[1])

	const former, current = "https://192.0.2.10:2380", "https://192.0.2.11:2380"
	if output := c.MustSlipway("etcd", "add", "second", former); !strings.Contains(output, "second="+former) {
		t.Errorf("slipway etcd add:\n%s", output)
	}
	// Use the member's ID, because a member that has never started has no name.
	id, _, _ := strings.Cut(lineWith(c.MustSlipway("etcd", "members"), former), " ")
	if id == "" {
		t.Fatal("slipway etcd members does not list the new member")
	}
	c.MustSlipway("etcd", "update", id, current)
	if line := lineWith(c.MustSlipway("etcd", "members"), id); !strings.Contains(line, " learner ") || !strings.Contains(line, current) {
		t.Errorf("after slipway etcd update, the member is %q", line)
	}
	c.MustSlipway("etcd", "remove", id)
	if line := lineWith(c.MustSlipway("etcd", "members"), id); line != "" {
		t.Errorf("after slipway etcd remove, the member is %q", line)
	}
	health := c.MustSlipway("etcd", "health")
	if !regexp.MustCompile(`\s[3-9]\.\d+\.\d+\s`).MatchString(health) {
		t.Errorf("etcd is older than the guide requires:\n%s", health)
	}
}

// lineWith returns the first line that contains the given word, or "".
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

// checkLogin tests that the user that the first start created can log in with the restored
// password.
func checkLogin(t *testing.T, c *kit.Cluster) {
	t.Helper()
	environment := []string{"KUBECONFIG=" + filepath.Join(t.TempDir(), "config")}
	result := c.SlipwayWith(environment, "oc", "login", "--insecure-skip-tls-verify",
		"-u", "developer", "-p", strings.TrimSpace(identityOf(t, c).password), fmt.Sprintf("https://%s:8443", c.Address))
	if result.Code != 0 {
		t.Errorf("oc login: %s%s", result.Stdout, result.Stderr)
	}
}
