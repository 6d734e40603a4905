package build

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const otherCluster = `
openshift.withCluster('production') {
  echo "in ${openshift.project()} of ${openshift.cluster()} as ${openshift.raw('whoami').out.trim()}"
  openshift.create('configmap', 'made', '--from-literal=a=b')
  openshift.withProject() { echo "project ${openshift.project()}" }
  openshift.withCluster() { echo "inner ${openshift.project()} as ${openshift.raw('whoami').out.trim()}" }
  openshift.doAs('inspector') { echo "viewer ${openshift.raw('whoami').out.trim()}" }
}
echo "outer ${openshift.project()} as ${openshift.raw('whoami').out.trim()}"
try {
  openshift.withCluster('SERVER') { openshift.raw('whoami') }
} catch (e) { echo "caught ${e.message}" }
try {
  openshift.withCluster('staging') { }
} catch (e) { echo "caught ${e.message}" }
openshift.withCluster('insecure://' + 'SERVER'.substring(8), 'inspector') { echo "insecure ${openshift.skipTLSVerify()} ${openshift.raw('whoami').out.trim()}" }
openshiftCreateResource apiURL: 'insecure://' + 'SERVER'.substring(8), authToken: 'inspector', namespace: 'PROJECT', jsonyaml: '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "older"}}'
`

// The pipeline connects to this cluster at its external address, as if it were another cluster.
func TestPipelineUsesOtherCluster(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	production := p.Namespace + "-production"
	p.OC("new-project", production, "--skip-config-write")
	t.Cleanup(func() { p.OC("delete", "project", production, "--wait=false") })
	target := p.In(production)
	accounts := map[string]string{"release": "edit", "inspector": "edit"}
	token := map[string]string{}
	for name, role := range accounts {
		target.OC("create", "serviceaccount", name)
		target.OC("policy", "add-role-to-user", role, "-z", name)
		token[name] = strings.TrimSpace(target.OC("create", "token", name))
	}
	authority, err := os.ReadFile(p.Path("pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	p.OC("create", "secret", "generic", "production", "--from-literal=server="+p.Config.Host, "--from-literal=token="+token["release"],
		"--from-literal=ca.crt="+string(authority), "--from-literal=project="+production)
	p.OC("create", "secret", "generic", "inspector", "--from-literal=openshift-client-token="+token["inspector"])
	p.OC("label", "secret", "production", "inspector", "credential.sync.jenkins.openshift.io=true")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.pipeline("release", strings.NewReplacer("SERVER", p.Config.Host, "PROJECT", production).Replace(otherCluster), "serviceAccount: pipeline, triggers: []")
	log := p.OC("start-build", "release", "--follow", "--wait")
	own, others := fmt.Sprintf("%s as system:serviceaccount:%[1]s:pipeline", p.Namespace), "system:serviceaccount:"+production+":"
	for _, want := range []string{
		"in " + production + " of " + p.Config.Host + " as " + others + "release\n", "project " + production + "\n", "inner " + own + "\n", "viewer " + others + "inspector\n",
		"outer " + own + "\n", "caught the cluster " + p.Config.Host + " needs a token", `caught the project has no secret for the credentials "staging"`,
		"insecure true " + others + "inspector\n",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	for _, word := range token {
		if strings.Contains(log, word) {
			t.Error("the log shows a token")
		}
	}
	if got := target.OC("get", "configmaps", "made", "older", "-o", "name"); got != "configmap/made\nconfigmap/older\n" && got != "configmap/made\nconfigmap/older" {
		t.Errorf("the other project has %s", got)
	}
}

func TestPipelineFollowsImageStream(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.pipeline("follow", `openshiftImageStream name: 'watched', tag: 'latest'
node { checkout([$class: 'OpenShiftImageStreams', imageStreamName: 'watched', tag: 'latest']) }`,
		`serviceAccount: pipeline, triggers: [{type: ImageChange, imageChange: {from: {kind: ImageStreamTag, name: "watched:latest"}}}]`)
	for i, script := range []string{"first", "second"} {
		p.push("watched:latest", "echo "+script)
		build := fmt.Sprintf("build/follow-%d", i+1)
		p.waitOutput(build, "{.status.phase}", "Complete")
		image := p.OC("get", "istag/watched:latest", "-o", "jsonpath={.image.metadata.name}")
		if log := p.OC("logs", build); strings.Count(log, "The image of watched:latest is "+image+"\n") != 2 {
			t.Errorf("the log of %s lacks %s:\n%s", build, image, log)
		}
	}
	p.pipeline("missing", "openshiftImageStream name: 'watched', tag: 'none'", "serviceAccount: pipeline, triggers: []")
	if log, err := p.TryOC("start-build", "missing", "--follow", "--wait"); err == nil || !strings.Contains(log, `"watched:none" not found`) {
		t.Errorf("a tag that does not exist: %v\n%s", err, log)
	}
}
