package build

import (
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
)

func TestValidateReportLimitsSize(t *testing.T) {
	long := strings.Repeat("a", maxTextBytes+1)
	for name, change := range map[string]func(*buildv1.Build){
		"message": func(b *buildv1.Build) { b.Status.Message = long },
		"reason":  func(b *buildv1.Build) { b.Status.Reason = buildv1.StatusReason(long) },
		"digest":  func(b *buildv1.Build) { b.Status.Output.To = &buildv1.BuildStatusOutputTo{ImageDigest: long} },
		"commit":  func(b *buildv1.Build) { b.Spec.Revision.Git.Message = long },
		"author":  func(b *buildv1.Build) { b.Spec.Revision.Git.Author.Email = long },
		"kind":    func(b *buildv1.Build) { b.Spec.Revision = &buildv1.SourceRevision{Type: buildv1.BuildSourceType(long)} },
		"stages":  func(b *buildv1.Build) { b.Status.Stages = make([]buildv1.StageInfo, maxStages+1) },
		"stage":   func(b *buildv1.Build) { b.Status.Stages[0].Name = buildv1.StageName(long) },
		"steps":   func(b *buildv1.Build) { b.Status.Stages[0].Steps = make([]buildv1.StepInfo, maxSteps+1) },
		"step":    func(b *buildv1.Build) { b.Status.Stages[0].Steps[0].Name = buildv1.StepName(long) },
		"":        func(*buildv1.Build) {},
	} {
		report := &buildv1.Build{}
		report.Spec.Revision = &buildv1.SourceRevision{Git: &buildv1.GitSourceRevision{Commit: "abc"}}
		report.Status.Message = long[1:]
		report.Status.Stages = []buildv1.StageInfo{{Name: buildv1.StageBuild, Steps: []buildv1.StepInfo{{Name: buildv1.StepDockerBuild}}}}
		change(report)
		if errs := validateReport(report); (len(errs) > 0) != (name != "") {
			t.Errorf("report with a long %q: %v", name, errs)
		}
	}
}
