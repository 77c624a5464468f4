import { conforms } from "./conformance.ts";
import { openFtp, openLocal, openSftp } from "./field.ts";

conforms("a local drop", openLocal, { hasLinks: true });
conforms("an SFTP drop", openSftp);
conforms("an FTP drop with MLSD", openFtp("auto"));
conforms("an FTP drop with LIST", openFtp("list"));
