package builder

import (
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timed runs a build step, and records its duration in the status.
func (r *run) timed(stage buildv1.StageName, step buildv1.StepName, work func() error) error {
	start := time.Now()
	err := work()
	r.addStep(stage, step, start, time.Since(start))
	return err
}

// addStep records a step. The duration of a stage is the sum of its steps.
func (r *run) addStep(stage buildv1.StageName, step buildv1.StepName, start time.Time, duration time.Duration) {
	info := buildv1.StepInfo{Name: step, StartTime: metav1.NewTime(start), DurationMilliseconds: duration.Milliseconds()}
	stages := r.Build.Status.Stages
	for i := range stages {
		if stages[i].Name == stage {
			stages[i].Steps = append(stages[i].Steps, info)
			stages[i].DurationMilliseconds += info.DurationMilliseconds
			return
		}
	}
	r.Build.Status.Stages = append(stages, buildv1.StageInfo{
		Name: stage, StartTime: info.StartTime, DurationMilliseconds: info.DurationMilliseconds, Steps: []buildv1.StepInfo{info},
	})
}
