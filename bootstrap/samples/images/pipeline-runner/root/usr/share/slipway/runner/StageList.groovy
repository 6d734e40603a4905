package pipeline

/** The content of `stages` and `parallel`. */
class StageList {
    private final Declarative pipeline
    private final List<Section> list = []

    StageList(Declarative pipeline) { this.pipeline = pipeline }

    List<Section> read(Closure body) {
        Declarative.with(body, this)
        list
    }

    void stage(String name, Closure body) { list << new Section(pipeline, name).read(body) }
}
