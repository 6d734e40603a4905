package build

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// publishRunner publishes the image that runs Jenkinsfiles in the cluster, unless the image already
// exists.
func (p *project) publishRunner() {
	p.t.Helper()
	if image, _ := p.TryOC("get", "istag/pipeline-runner:latest", "-n", "openshift", "-o", "name"); image == "" {
		p.BuildSample("pipeline-runner", "")
	}
}

// pipeline creates a BuildConfig with a Jenkinsfile. fields contains additional fields for its
// spec.
func (p *project) pipeline(name, jenkinsfile, fields string) {
	p.t.Helper()
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {strategy: {jenkinsPipelineStrategy: {
		jenkinsfile: %q, env: [{name: COLOR, value: red}]}}, %s}}`, name, jenkinsfile, fields))
}

// stages returns the names and statuses of a build's stages, as displayed by the web console.
func (p *project) stages(build string) (result []string) {
	p.t.Helper()
	var status struct {
		Stages []struct{ Name, Status string }
	}
	text := p.OC("get", "build", build, "-o", `jsonpath={.metadata.annotations.openshift\.io/jenkins-status-json}`)
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		p.t.Fatalf("%v in %s", err, text)
	}
	for _, stage := range status.Stages {
		result = append(result, stage.Name+" "+stage.Status)
	}
	return result
}

const declarative = `
def twice(text) { "${text}${text}" }
pipeline {
  agent any
  environment {
    WORD = "hello"
    LINE = "${WORD} ${COLOR}"
  }
  parameters {
    string(name: 'WHO', defaultValue: 'nobody')
  }
  options {
    timeout(time: 10, unit: 'MINUTES')
  }
  stages {
    stage('Check') {
      when { expression { params.WHO == 'nobody' } }
      steps { echo 'skipped for the second build' }
    }
    stage('Both') {
      parallel {
        stage('Left') { steps { sh 'echo "$LINE"' } }
        stage('Right') { steps { script { echo twice(params.WHO) } } }
      }
      post { changed { echo "stage changed" } }
    }
    stage('Test') {
      steps {
        sh 'test "$WHO" = ann'
      }
      post {
        failure { echo 'the test has failed' }
      }
    }
  }
  post {
    always { echo "result: ${currentBuild.currentResult}" }
    changed { echo "changed from ${currentBuild.previousBuild?.result}" }
    fixed { echo 'fixed' }
    regression { echo 'regression' }
  }
}`

func TestPipelineRunsJenkinsfile(t *testing.T) {
	p := newProject(t)
	p.OC("delete", "imagestream", "pipeline-runner", "-n", "openshift", "--ignore-not-found")
	// The second command fails unless the runner's Java virtual machine can use its class data
	// archive.
	p.pipeline("early", `node { sh 'id -un'; sh '$(tr "\\0" " " </proc/1/cmdline | sed "s/java /java -Xshare:on /; s/pipeline.Main.*/-version/")' }`, "triggers: []")
	p.OC("start-build", "early")
	p.waitOutput("build/early-1", "{.status.phase} {.status.reason}", "New InvalidImageReference")
	samples := func(state string) func(context.Context) error {
		return func(context.Context) error {
			list := p.MustSlipway("samples", "list")
			if !regexp.MustCompile(`(?m)^pipeline-runner .* ` + state + `$`).MatchString(list) {
				return fmt.Errorf("the samples are not %s:\n%s", state, list)
			}
			return nil
		}
	}
	p.WaitFor("the state of the missing image", samples("missing"))
	p.MustSlipway("samples", "build", "pipeline-runner", "--background", "--from", p.DownloadSamples("pipeline-runner"))
	p.WaitFor("the image that the command creates in the background", samples("created"))
	p.waitOutput("build/early-1", "{.status.phase}", "Complete")

	p.pipeline("app", declarative, "triggers: [{type: Generic, generic: {secret: word}}]")
	log, err := p.TryOC("start-build", "app", "--follow", "--wait")
	for _, want := range []string{"skipped for the second build\n", "[Left] hello red\n", "[Right] nobodynobody\n", "stage changed\n", "the test has failed\n", "result: FAILURE\n", "changed from null\n", "ERROR: script returned exit code 1\nFinished: FAILURE\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if err == nil {
		t.Error("a failed pipeline has the phase Complete")
	}
	p.waitOutput("build/app-1", "{.status.phase} {.status.reason}", "Failed GenericBuildFailed")
	log = p.OC("start-build", "app", "--env=WHO=ann", "--follow", "--wait")
	if !strings.Contains(log, "result: SUCCESS\n") || !strings.Contains(log, "stage changed\n") || !strings.Contains(log, "changed from FAILURE\n") ||
		!strings.Contains(log, "\nfixed\n") || strings.Contains(log, "regression") || strings.Contains(log, "skipped for") {
		t.Errorf("the log of the second build is\n%s", log)
	}
	p.OC("start-build", fmt.Sprintf("--from-webhook=https://%s:8443/apis/build.openshift.io/v1/namespaces/%s/buildconfigs/app/webhooks/word/generic", p.Address, p.Namespace))
	p.waitOutput("build/app-3", "{.status.phase}", "Failed")
	log = p.OC("logs", "build/app-3")
	if !strings.Contains(log, "changed from SUCCESS\n") || !strings.Contains(log, "\nregression\n") || strings.Contains(log, "stage changed") || strings.Contains(log, "fixed") {
		t.Errorf("the log of the third build is\n%s", log)
	}
	got := strings.Join(p.stages("app-2"), ", ")
	if got != "Check NOT_EXECUTED, Both SUCCESS, Left SUCCESS, Right SUCCESS, Test SUCCESS" && got != "Check NOT_EXECUTED, Both SUCCESS, Right SUCCESS, Left SUCCESS, Test SUCCESS" {
		t.Errorf("the stages are %s", got)
	}
	if pod := p.Pod("app-2-build"); pod.Annotations["openshift.io/scc"] != "restricted" {
		t.Errorf("the pod has the security context constraint %q", pod.Annotations["openshift.io/scc"])
	}
}

func TestPipelineInRepositoryChecksOutSource(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	url, commit := p.repository(map[string]string{"ci/Jenkinsfile": "node { stage('Build') { checkout scm; sh 'cat file; git rev-parse HEAD' } }", "file": "content of the file\n"})
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {source: {git: {uri: %q, ref: main}},
		strategy: {jenkinsPipelineStrategy: {jenkinsfilePath: ci/Jenkinsfile}}}}`, url+"/.git"))
	log := p.OC("start-build", "app", "--follow", "--wait")
	if !strings.Contains(log, "content of the file\n") || strings.Count(log, commit) != 2 {
		t.Errorf("the log is\n%s", log)
	}
	if got := p.OC("get", "build/app-1", "-o", "jsonpath={.spec.revision.git.commit}"); got != commit {
		t.Errorf("the revision is %s", got)
	}
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: bad}, spec: {source: {git: {uri: %q, ref: none}},
		strategy: {jenkinsPipelineStrategy: {}}}}`, url+"/.git"))
	if log, err := p.TryOC("start-build", "bad", "--follow", "--wait"); err == nil || !strings.Contains(log, `branch, tag or commit "none" does not exist`) {
		t.Errorf("%v: the log is\n%s", err, log)
	}
	p.waitOutput("build/bad-1", "{.status.phase} {.status.reason}", "Failed FetchSourceFailed")
}

func TestPipelineUsesLibraryAndKeepsArtifacts(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	url, _ := p.repository(map[string]string{
		"vars/greet.groovy":    "def call(String name) { echo acme.Text.upper(\"hello $name\") }\n",
		"src/acme/Text.groovy": "package acme\nclass Text { static String upper(String text) { text.toUpperCase() } }\n",
		"resources/word":       "from the library",
	})
	const jenkinsfile = "@Library('tools@main') _\nnode { greet 'ann'; writeFile file: 'out/word', text: libraryResource('word'); archiveArtifacts 'out/**' }\n" +
		"echo library('tools@main').acme.Text.upper('by name')"
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: made}, spec: {strategy: {jenkinsPipelineStrategy: {
		jenkinsfile: %q, env: [{name: LIBRARY_TOOLS, value: %q}]}}}}`, jenkinsfile, url+"/.git"))
	for _, number := range []string{"1", "2"} {
		log := p.OC("start-build", "made", "--follow", "--wait")
		if !strings.Contains(log, "HELLO ANN\n") || !strings.Contains(log, "BY NAME\n") || !strings.Contains(log, "The artifacts are in the image stream tag made-artifacts:"+number+"\n") {
			t.Errorf("the log is\n%s", log)
		}
	}
	host := p.Address.String() + ":5000"
	auth := base64.StdEncoding.EncodeToString([]byte("any:" + strings.TrimSpace(p.OC("create", "token", "builder"))))
	credentials, into := filepath.Join(t.TempDir(), "config.json"), t.TempDir()
	if err := os.WriteFile(credentials, fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, auth), 0o600); err != nil {
		t.Fatal(err)
	}
	p.OC("image", "extract", "--insecure", "-a", credentials, host+"/"+p.Namespace+"/made-artifacts:2", "--path", "/:"+into)
	if content, err := os.ReadFile(filepath.Join(into, "out/word")); err != nil || string(content) != "from the library" {
		t.Errorf("the artifact is %q, %v", content, err)
	}
	p.OC("delete", "bc/made")
	p.WaitFor("the deletion of the artifacts", func(context.Context) error {
		if out := p.OC("get", "is/made-artifacts", "--ignore-not-found", "-o", "name"); out != "" {
			return errors.New(out)
		}
		return nil
	})
}

// A Jenkinsfile must not be able to read the secret with which its private libraries are fetched.
// The secret must not be sent to any other server.
func TestPipelineLoadsPrivateLibrary(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	root := t.TempDir()
	p.commit(filepath.Join(root, "app"), map[string]string{
		"Jenkinsfile":       "@Library('tools@main') _\nnode { greet 'ann'; sh 'cat /var/run/secrets/openshift.io/source/* || true' }",
		"other/Jenkinsfile": "library 'other'",
	})
	p.commit(filepath.Join(root, "tools"), map[string]string{"vars/greet.groovy": "def call(String name) { echo \"hello $name\" }\n"})
	handler := repositories(root)
	private := p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret-word" {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	var requests, leaks atomic.Int64
	other := p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "" {
			leaks.Add(1)
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	}))
	p.OC("create", "secret", "generic", "git", "--type=kubernetes.io/basic-auth", "--from-literal=username=ann", "--from-literal=password=secret-word")
	for name, strategy := range map[string]string{
		"private": fmt.Sprintf("env: [{name: LIBRARY_TOOLS, value: %q}]", private+"/tools/.git"),
		"foreign": fmt.Sprintf("jenkinsfilePath: other/Jenkinsfile, env: [{name: LIBRARY_OTHER, value: %q}]", other+"/tools/.git"),
	} {
		p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {source: {git: {uri: %q}, sourceSecret: {name: git}},
			strategy: {jenkinsPipelineStrategy: {%s}}}}`, name, private+"/app/.git", strategy))
	}
	log := p.OC("start-build", "private", "--follow", "--wait")
	if !strings.Contains(log, "hello ann\n") || strings.Contains(log, "secret-word") {
		t.Errorf("the log is\n%s", log)
	}
	if log, err := p.TryOC("start-build", "foreign", "--follow", "--wait"); err == nil || !strings.Contains(log, `library "other": `) {
		t.Errorf("the log of a library on another server is %v\n%s", err, log)
	}
	// A Jenkinsfile that is allowed to read the secret can use it to fetch a library and a
	// repository.
	p.OC("label", "secret", "git", "credential.sync.jenkins.openshift.io=true")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.pipeline("named", fmt.Sprintf(`library identifier: 'tools@main', retriever: modernSCM([remote: '%[1]s/tools/.git', credentialsId: 'git'])
node {
  greet 'bob'
  git url: '%[1]s/app/.git', branch: 'main', credentialsId: 'git'
  echo "found ${fileExists('other/Jenkinsfile')}"
  try { git url: '%[2]s/app/.git', branch: 'main' } catch (e) { echo 'refused' }
}`, private, other), "serviceAccount: pipeline, triggers: []")
	log = p.OC("start-build", "named", "--follow", "--wait")
	if !strings.Contains(log, "hello bob\n") || !strings.Contains(log, "found true\n") || !strings.Contains(log, "refused\n") || strings.Contains(log, "secret-word") {
		t.Errorf("the log is\n%s", log)
	}
	if requests.Load() == 0 || leaks.Load() > 0 {
		t.Errorf("the other server got %d requests, %d of them with credentials", requests.Load(), leaks.Load())
	}
}

const tested = `node {
  stage('Test') {
    writeFile file: 'target/TEST-cart.xml', text: """<testsuites><testsuite>
      <testcase classname="com.acme.CartTest" name="sum" time="1.5"><failure message="expected 3&#10;Status: Complete">trace</failure></testcase>
      <testcase classname="com.acme.CartTest" name="remove"><error>
        java.lang.IllegalStateException: empty
        at com.acme.Cart</error></testcase>
      <testcase classname="com.acme.CartTest" name="add" time="1,000.5"/>
      <testcase classname="com.acme.CartTest" name="later"><skipped/></testcase></testsuite></testsuites>"""
    writeFile file: 'target/TEST-evil.xml', text: '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="a">&x;<failure>&x;</failure></testcase></testsuite>'
    def result = junit 'target/*.xml'
    echo "${result.passCount} of ${result.totalCount}"
  }
  stage('Many') {
    writeFile file: 'many.xml', text: '<testsuite>' + (1..5000).collect { "<testcase name='t$it'><failure message='${'x' * 1000}'/></testcase>" }.join() + '</testsuite>'
    junit testResults: 'many.xml', skipMarkingBuildUnstable: true
    junit testResults: 'none/**', allowEmptyResults: true
  }
}`

func TestPipelineRecordsResultsOfTests(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.pipeline("app", tested, "triggers: []")
	log := p.OC("start-build", "app", "--follow", "--wait")
	for _, want := range []string{"Recorded 5 tests: 3 failed, 1 skipped\n", "1 of 5\n", "Finished: UNSTABLE\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if got := strings.Join(p.stages("app-1"), ", "); got != "Test UNSTABLE, Many SUCCESS" {
		t.Errorf("the stages are %s", got)
	}
	text := p.OC("get", "build/app-1", "-o", `jsonpath={.metadata.annotations.pipeline\.slipway\.io/test-results-json}`)
	var results struct {
		Total, Failed, Skipped, DurationMillis int
		Failures                               []map[string]string
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil || len(text) > 32<<10 {
		t.Fatalf("%v in %d bytes: %s", err, len(text), text)
	}
	if results.Total != 5005 || results.Failed != 5003 || results.Skipped != 1 || results.DurationMillis != 1_002_000 || len(results.Failures) < 20 {
		t.Errorf("the results are %+v", results)
	}
	want := []map[string]string{
		{"suite": "com.acme.CartTest", "name": "sum", "message": "expected 3\nStatus: Complete"},
		{"suite": "com.acme.CartTest", "name": "remove", "message": "java.lang.IllegalStateException: empty"},
	}
	if got := results.Failures[:2]; !reflect.DeepEqual(got, want) {
		t.Errorf("the first failures are %q", got)
	}
	description := p.OC("describe", "build/app-1")
	if !strings.Contains(description, "5005 total, 5003 failed, 1 skipped") || !strings.Contains(description, "com.acme.CartTest.sum:") ||
		strings.Contains(description, "root:") || strings.Contains(description, "\nStatus: Complete") {
		t.Errorf("the description is\n%s", description)
	}
	p.pipeline("empty", "node { junit 'none/**' }", "triggers: []")
	if log, err := p.TryOC("start-build", "empty", "--follow", "--wait"); err == nil || !strings.Contains(log, `no report with tests matches "none/**"`) {
		t.Errorf("a pipeline without reports: %v\n%s", err, log)
	}
}

func TestPipelineWaitsForInputAndCanBeCanceled(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.pipeline("app", "node { stage('Build') { sh 'echo built' } }\nstage('Approve') { input message: 'Deploy?', id: 'deploy' }\nnode { stage('Deploy') { echo 'deployed' } }", "runPolicy: Parallel")
	p.OC("start-build", "app")
	p.waitOutput("build/app-1", `{.metadata.annotations.openshift\.io/jenkins-pending-input-actions-json}`,
		`[{"id":"deploy","proceedText":"Proceed","message":"Deploy?","inputs":[],"proceedUrl":"","abortUrl":"","redirectApprovalUrl":""}]`)
	if got := strings.Join(p.stages("app-1"), ", "); got != "Build SUCCESS, Approve PAUSED_PENDING_INPUT" {
		t.Errorf("the stages are %s", got)
	}
	// Kill the runner, the control plane and the node. After they restart, the runner must not
	// repeat completed steps.
	p.OC("exec", "app-1-build", "--", "sh", "-c", "kill 1")
	p.waitOutput("pod/app-1-build", "{.status.containerStatuses[0].restartCount}", "1")
	p.Kill("control-plane")
	p.Kill("node")
	p.WaitFor("the approval", func(context.Context) error {
		_, err := p.TryOC("annotate", "build/app-1", "pipeline.slipway.io/input-deploy=proceed")
		return err
	})
	p.waitOutput("build/app-1", "{.status.phase}", "Complete")
	log := p.OC("logs", "build/app-1")
	if strings.Count(log, "\nbuilt\n") != 1 || !strings.Contains(log, "Resuming the build") || !strings.HasSuffix(log, "deployed\nFinished: SUCCESS\n") {
		t.Errorf("the log is\n%s", log)
	}
	p.OC("start-build", "app")
	p.waitOutput("build/app-2", "{.status.phase}", "Running")
	p.OC("cancel-build", "app-2")
	p.waitOutput("build/app-2", "{.status.phase}", "Cancelled")
}
