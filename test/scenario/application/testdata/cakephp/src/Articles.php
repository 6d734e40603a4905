<?php
/** The articles in the database of the template. */
class Articles
{
    private PDO $database;

    public function __construct()
    {
        $address = getenv('DATABASE_ENGINE') . ':host=' . getenv('DATABASE_SERVICE_NAME') . ';dbname=' . getenv('DATABASE_NAME');
        $this->database = new PDO($address, getenv('DATABASE_USER'), getenv('DATABASE_PASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    }

    public function migrate(): void
    {
        $this->database->exec('CREATE TABLE IF NOT EXISTS articles (title TEXT)');
    }

    public function add(string $title): void
    {
        $this->database->prepare('INSERT INTO articles (title) VALUES (?)')->execute([$title]);
    }

    public function titles(): array
    {
        return $this->database->query('SELECT title FROM articles')->fetchAll(PDO::FETCH_COLUMN);
    }
}
