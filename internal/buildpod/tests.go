package buildpod

import "encoding/json"

// TestResultsAnnotation is the annotation of a Build with the results of a pipeline's tests.
const TestResultsAnnotation = "pipeline.slipway.io/test-results-json"

// MaxTestResults limits TestResultsAnnotation, in bytes.
const MaxTestResults = 32 << 10

// TestResults are the results of the tests that a pipeline has published.
type TestResults struct {
	// Total counts all tests, including the Failed and the Skipped ones.
	Total, Failed, Skipped int
	// DurationMillis is the sum of the tests' durations.
	DurationMillis int64
	// Failures are the first failures, perhaps not all.
	Failures []TestFailure
}

// TestFailure is a test that failed. Its texts come from the program under test.
type TestFailure struct {
	// Suite is the class of the test, or the file of a report that cannot be read.
	Suite, Name, Message string
}

// ReadTestResults returns the results in the annotations of a build, or nil if there are no valid
// ones. Anyone who updates builds can write them.
func ReadTestResults(annotations map[string]string) *TestResults {
	var results TestResults
	if json.Unmarshal([]byte(annotations[TestResultsAnnotation]), &results) != nil {
		return nil
	}
	return &results
}
