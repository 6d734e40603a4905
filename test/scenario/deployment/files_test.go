package deployment

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// rsyncImage is an image that contains the tools, and this machine's rsync with its libraries.
const rsyncImage = "localhost/rsync:1"

func makeRsyncImage(t *testing.T, c *kit.Cluster) {
	t.Helper()
	program, err := exec.LookPath("rsync")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, file := range append(strings.Fields(string(libraries)), program) {
		if !filepath.IsAbs(file) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "root", file), string(content))
	}
	write(t, filepath.Join(dir, "Dockerfile"), "FROM "+kit.ToolsImage+"\nCOPY root/ /\nENV PATH=/bin:/usr/bin\n")
	c.MustSlipway("images", "build", "--tag="+rsyncImage, dir)
}

// write writes an executable file and creates its directory.
func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// onClaim returns a claim and a DeploymentConfig. The DeploymentConfig's pods contain rsync and
// mount the claim's volume at /data.
func onClaim(claim string) string {
	return volumeClaim(claim) + "---\n" + strings.Replace(configuration("kept", `replicas: 1, triggers: [{type: ConfigChange}]`, `volumeMounts: [{name: data, mountPath: /data}]`),
		"containers: [{name: main, image: \""+kit.ToolsImage, "volumes: [{name: data, persistentVolumeClaim: {claimName: "+claim+"}}], containers: [{name: main, image: \""+rsyncImage, 1)
}

func volumeClaim(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}\n", name)
}

// waitFiles waits until a directory in the deployment's pod contains exactly the files in want.
func waitFiles(c *kit.Cluster, directory, want string) {
	c.WaitFor(directory+" to have "+want, func(context.Context) error {
		got, err := c.TryOC("rsh", "dc/kept", "ls", directory)
		if err == nil && strings.Join(strings.Fields(got), " ") != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

func TestProjectIsRestoredFromFiles(t *testing.T) {
	c := kit.Shared(t)
	makeRsyncImage(t, c)
	c.Apply(onClaim("data"))
	c.OC("create", "secret", "generic", "key", "--from-literal=key=value")
	waitReplicas(c, "kept-1", 1)
	backup := c.OC("export", "dc/kept", "pvc/data", "secret/key", "-o", "yaml")

	other := c.Namespace + "-again"
	c.OC("new-project", other, "--skip-config-write")
	t.Cleanup(func() { c.OC("delete", "project", other, "--wait=false") })
	c = c.In(other)
	file := filepath.Join(t.TempDir(), "project.yaml")
	write(t, file, backup)
	c.OC("create", "-f", file)
	waitReplicas(c, "kept-1", 1)
	waitOutput(c, "secret/key", "{.data.key}", "dmFsdWU=")

	// Copy files to the claim's volume and back with rsync. rsync must not copy excluded files, and
	// must delete files that were deleted in the source.
	data := t.TempDir()
	for _, name := range []string{"a", "b", "c.log"} {
		write(t, filepath.Join(data, name), "content of "+name)
	}
	pod := c.OnlyPod("app=kept").Name
	c.OC("rsync", data+"/", pod+":/data/files", "--strategy=rsync", "--exclude=*.log")
	waitFiles(c, "/data/files", "a b")
	if err := os.Remove(filepath.Join(data, "b")); err != nil {
		t.Fatal(err)
	}
	c.OC("rsync", data+"/", pod+":/data/files", "--strategy=rsync", "--delete")
	waitFiles(c, "/data/files", "a c.log")
	c.OC("rsh", pod, "rm", "/data/files/a")
	c.OC("rsync", data+"/", pod+":/data/files", "--strategy=rsync-daemon")
	waitFiles(c, "/data/files", "a c.log")
	for _, strategy := range []string{"rsync", "rsync-daemon"} {
		back := t.TempDir()
		c.OC("rsync", pod+":/data/files/", back, "--strategy="+strategy)
		if content, err := os.ReadFile(filepath.Join(back, "a")); err != nil || string(content) != "content of a" {
			t.Errorf("the file copied by %s contains %q, %v", strategy, content, err)
		}
	}
	c.StartOC("rsync", data+"/", pod+":/data/watched", "--watch", "--quiet")
	waitFiles(c, "/data/watched", "a c.log")
	write(t, filepath.Join(data, "new"), "")
	waitFiles(c, "/data/watched", "a c.log new")

	// The data must remain when the pods restart. Afterwards, replace the claim with another claim,
	// and copy the files to it.
	c.OC("scale", "--replicas=0", "dc/kept")
	waitReplicas(c, "kept-1", 0)
	c.OC("scale", "--replicas=1", "dc/kept")
	waitReplicas(c, "kept-1", 1)
	waitFiles(c, "/data/files", "a c.log")
	c.Apply(volumeClaim("fresh"))
	c.OC("set", "volume", "dc/kept", "--add", "--name=data", "--type=persistentVolumeClaim", "--claim-name=fresh", "--mount-path=/data", "--overwrite")
	waitReplicas(c, "kept-2", 1)
	waitReplicas(c, "kept-1", 0)
	c.OC("rsync", data+"/", c.OnlyPod("deployment=kept-2").Name+":/data/files")
	waitFiles(c, "/data/files", "a c.log new")
	description := strings.Join(strings.Fields(c.OC("describe", "dc/kept")), " ")
	for _, want := range []string{"Latest Version: 2", "Selector: app=kept", "Replicas: 1", "Triggers: Config", "ClaimName: fresh"} {
		if !strings.Contains(description, want) {
			t.Errorf("the description does not contain %q: %s", want, description)
		}
	}
}
