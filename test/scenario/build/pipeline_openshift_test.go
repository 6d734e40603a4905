package build

import (
	"fmt"
	"strings"
	"testing"
)

// deploying is the pipeline in OpenShift's documentation that creates an application from a
// template.
const deploying = `
def templateName = 'web'
pipeline {
  agent any
  options { timeout(time: 20, unit: 'MINUTES') }
  stages {
    stage('preamble') {
      steps { script { openshift.withCluster() { openshift.withProject() { echo "Using project: ${openshift.project()}" } } } }
    }
    stage('cleanup') {
      steps { script { openshift.withCluster() { openshift.withProject() {
        openshift.selector("all", [ template : templateName ]).delete()
        if (openshift.selector("secrets", templateName).exists()) {
          openshift.selector("secrets", templateName).delete()
        }
      } } } }
    }
    stage('create') {
      steps { script { openshift.withCluster() { openshift.withProject() {
        def created = openshift.newApp(templateName)
        echo "created ${created.names().sort()}"
      } } } }
    }
    stage('build') {
      steps { script { openshift.withCluster() { openshift.withProject() {
        def builds = openshift.selector("bc", templateName).related('builds')
        timeout(5) { builds.untilEach(1) { return (it.object().status.phase == "Complete") } }
        builds.logs()
      } } } }
    }
    stage('deploy') {
      steps { script { openshift.withCluster() { openshift.withProject() {
        openshift.selector("dc", templateName).rollout().status()
        timeout(5) {
          openshift.selector("dc", templateName).related('pods').untilEach(1) { return (it.object().status.phase == "Running") }
        }
      } } } }
    }
    stage('tag') {
      steps { script { openshift.withCluster() { openshift.withProject() {
        openshift.tag("${templateName}:latest", "${templateName}-staging:latest")
        def models = openshift.process(templateName).findAll { it.kind == 'Secret' }
        models*.metadata.each { it.name = 'copy' }
        openshift.apply(models)
        def started = openshift.selector('bc', templateName).startBuild('--wait')
        def log = started.logs('-f')
        echo "started ${started.count()} build with ${started.actions[0].verb}: ${log.out.contains('Push successful')}, ${log.actions[0].cmd.tokenize()[-1]}, ${log.status}"
        def dc = openshift.selector('dc', templateName)
        dc.annotate([note: 'two words'], '--overwrite')
        openshift.patch('dc/web', '\'{"metadata": {"labels": {"patched": "yes"}}}\'')
        timeout(5) { dc.untilEach(1) { it.object().status.latestVersion == 2 } }
        dc.rollout().status()
        dc.rollout().latest()
        dc.rollout().status('-w')
        echo "dc ${dc.object().metadata.annotations.note}, ${openshift.selector('dc', [patched: 'yes']).names()}"
        def both = openshift.selector(['dc/web', 'bc/web', 'bc/none'])
        echo "narrowed ${both.narrow('bc').names()} of ${both.count()}, ${both.exists()}"
        openshift.selector('dc', templateName).withEach { echo "each ${it.name()}" }
        echo "me ${openshift.raw('whoami').out.trim()}"
        openshift.doAs("${openshift.project()}-other") { echo "other ${openshift.raw('whoami').out.trim()}" }
        try {
          openshift.raw('get', 'dc/missing')
        } catch (e) {
          echo "caught: ${e.message}"
        }
      } } } }
    }
  }
}`

const older = `node {
  stage('Build') { openshiftBuild bldCfg: 'web', showBuildLogs: 'true' }
  stage('Verify') { openshiftVerifyBuild bldCfg: 'web' }
  stage('Deploy') { openshiftDeploy depCfg: 'web' }
  stage('Scale') { openshiftScale depCfg: 'web', replicaCount: '2', verifyReplicaCount: 'true' }
  stage('Check') {
    openshiftVerifyDeployment depCfg: 'web', replicaCount: '2', verifyReplicaCount: 'true'
    openshiftVerifyService svcName: 'web'
  }
  stage('Tag') { openshiftTag srcStream: 'web', srcTag: 'latest', destStream: 'web-old', destTag: 'prod' }
}`

func TestPipelinesOfDocumentsDeployApplications(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.Apply(fmt.Sprintf(`{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: web}, labels: {template: web}, objects: [
		{apiVersion: v1, kind: Secret, metadata: {name: web}, stringData: {a: b}},
		{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: web}},
		{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: web}, spec: {triggers: [{type: ConfigChange}], strategy: {dockerStrategy: {}},
			source: {dockerfile: "FROM %s\nLABEL made=here\n"}, output: {to: {kind: ImageStreamTag, name: "web:latest"}}}},
		{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: 1, selector: {name: web},
			triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [web], from: {kind: ImageStreamTag, name: "web:latest"}}}],
			template: {metadata: {labels: {name: web}}, spec: {terminationGracePeriodSeconds: 0,
				containers: [{name: web, image: " ", command: [/bin/busybox, httpd, -f, -p, "8080"]}]}}}},
		{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {name: web}, ports: [{port: 80, targetPort: 8080}]}}]}`, p.base()))
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.OC("create", "secret", "generic", "other", "--from-literal=openshift-client-token="+strings.TrimSpace(p.OC("create", "token", "builder")))
	p.OC("label", "secret", "other", "credential.sync.jenkins.openshift.io=true")
	p.pipeline("deploy", deploying, "serviceAccount: pipeline, triggers: []")
	log := p.OC("start-build", "deploy", "--follow", "--wait")
	account := "system:serviceaccount:" + p.Namespace + ":"
	for _, want := range []string{
		"Using project: " + p.Namespace + "\n", "created [buildconfig/web, deploymentconfig/web, imagestream/web, secret/web, service/web]\n",
		"started 1 build with start-build: true, -f, 0\n", "dc two words, [deploymentconfig/web]\n", "narrowed [buildconfig/web] of 2, false\n", "each deploymentconfig/web\n",
		"me " + account + "pipeline\n", "other " + account + "builder\n", "get dc/missing: Error from server (NotFound)",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if got := p.OC("get", "istag/web-staging:latest", "secret/copy", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("the pipeline created %s", got)
	}
	p.pipeline("older", older, "serviceAccount: pipeline, triggers: []")
	p.OC("start-build", "older", "--follow", "--wait")
	if got := strings.Join(p.stages("older-1"), ", "); got != "Build SUCCESS, Verify SUCCESS, Deploy SUCCESS, Scale SUCCESS, Check SUCCESS, Tag SUCCESS" {
		t.Errorf("the stages are %s", got)
	}
	if got := p.OC("get", "istag/web-old:prod", "-o", "name") + p.OC("get", "dc/web", "-o", "jsonpath={.spec.replicas}"); got != "imagestreamtag.image.openshift.io/web-old:prod\n2" {
		t.Errorf("the older steps created %s", got)
	}
	// The builds' service account is not allowed to deploy.
	p.pipeline("refused", "openshift.raw('get', 'dc')", "triggers: []")
	if log, err := p.TryOC("start-build", "refused", "--follow", "--wait"); err == nil || !strings.Contains(log, "forbidden") {
		t.Errorf("a pipeline without rights: %v\n%s", err, log)
	}
}

func TestPipelineUsesCredentials(t *testing.T) {
	p := newProject(t)
	p.publishRunner()
	p.OC("create", "secret", "generic", "git", "--type=kubernetes.io/basic-auth", "--from-literal=username=ann", "--from-literal=password=secret-word")
	p.OC("create", "secret", "generic", "words", "--from-literal=secrettext=other-word")
	p.OC("create", "secret", "generic", "notes", "--from-literal=filename=third-word")
	p.OC("create", "secret", "generic", "private", "--from-literal=secrettext=fourth-word")
	p.OC("label", "secret", "git", "words", "notes", "credential.sync.jenkins.openshift.io=true")
	p.OC("create", "serviceaccount", "pipeline")
	p.OC("policy", "add-role-to-user", "edit", "-z", "pipeline")
	p.pipeline("app", fmt.Sprintf(`pipeline {
  agent any
  environment { GIT = credentials('%[1]s-git') }
  stages { stage('Use') { steps {
    sh 'echo "as $GIT_USR with $GIT"; test "$GIT_PSW" = secret-word'
    withCredentials([usernamePassword(credentialsId: 'git', usernameVariable: 'U', passwordVariable: 'P'),
      string(credentialsId: 'words', variable: 'W'), file(credentialsId: 'notes', variable: 'F')]) {
      sh 'echo "$U $P $W $(cat "$F")"; echo "$W" | tr a-z A-Z; echo "$F" >file'
    }
    sh 'echo "later: $W"; if test -e "$(cat file)"; then exit 1; fi; if grep -rlE "s[e]cret-word|o[t]her-word|t[h]ird-word" /var/lib/slipway-builder/journal /var/lib/slipway-builder/log; then exit 1; fi'
  } } }
}`, p.Namespace), "serviceAccount: pipeline, triggers: []")
	log := p.OC("start-build", "app", "--follow", "--wait")
	for _, want := range []string{"as ann with ann:****\n", "ann **** **** ****\n", "OTHER-WORD\n", "later: \n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	for _, secret := range []string{"secret-word", "other-word", "third-word"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
	p.pipeline("refused", "node { withCredentials([string(credentialsId: 'words', variable: 'W')]) { } }", "triggers: []")
	p.pipeline("unlabeled", "node { withCredentials([string(credentialsId: 'private', variable: 'W')]) { } }", "serviceAccount: pipeline, triggers: []")
	for name, want := range map[string]string{"refused": "forbidden", "unlabeled": `no secret for the credentials "private" with the label`} {
		if log, err := p.TryOC("start-build", name, "--follow", "--wait"); err == nil || !strings.Contains(log, want) {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
	}
}
